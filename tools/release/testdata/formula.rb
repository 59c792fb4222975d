# Reads a formula as Homebrew does, as far as ours needs it:
#
#   ruby formula.rb FORMULA SYSTEM MACHINE              prints the URL and checksum for a platform
#   ruby formula.rb FORMULA SYSTEM MACHINE DIR PREFIX   and installs what is unpacked in DIR
require "fileutils"
require "pathname"

formula, SYSTEM, MACHINE, dir, prefix = ARGV
PREFIX = Pathname.new(prefix || "/nowhere")

class Place
  def initialize(path) = @path = path
  def to_s = @path.to_s
  def install(*files) = [FileUtils.mkdir_p(@path), FileUtils.mv(files.flatten, @path)]
  def install_symlink(links) = links.each { |to, name| FileUtils.ln_s(to.to_s, @path/name) }
  def /(name) = @path/name
end

class Formula
  @said = {}
  class << self
    %i[desc homepage version license url sha256].each do |word|
      define_method(word) { |value = nil| value ? (@said ||= {})[word] = value : @said.fetch(word) }
    end
    def on_macos = (yield if SYSTEM == "darwin")
    def on_linux = (yield if SYSTEM == "linux")
    def on_arm = (yield if MACHINE == "arm64")
    def on_intel = (yield if MACHINE == "amd64")
    def test(&block) = define_method(:run_test, &block)
  end
  def version = self.class.version
  def bin = Place.new(PREFIX/"bin")
  def man1 = Place.new(PREFIX/"share/man/man1")
  def shell_output(command) = `#{command}`
  def assert_match(want, got) = got.include?(want) || raise("#{got.inspect} has no #{want}")
  def generate_completions_from_executable(program, *args)
    %w[bash zsh fish].each { |shell| system(program.to_s, *args, shell, out: File::NULL) || raise("no completions for #{shell}") }
  end
end

load formula
wanted = File.basename(formula, ".rb").split("-").map(&:capitalize).join
found = Object.const_get(wanted)
%i[desc homepage license].each { |word| found.send(word) }
puts found.version, found.url, found.sha256
if dir
  Dir.chdir(dir) { found.new.install }
  found.new.run_test
end
