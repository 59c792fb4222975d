-- A session with the language server in Neovim without a screen: it opens a custom resource with two mistakes, prints
-- the diagnostics, completes a field, applies a fix, and prints the file. Run it with run.sh.
local folder = vim.env.ESPALIER_SESSION
local file = folder .. "/web.yaml"
vim.cmd("edit " .. file)
vim.bo.filetype = "yaml"

local id = vim.lsp.start_client({
  name = "espalier",
  cmd = { vim.env.ESPALIER, "lsp" },
  root_dir = folder,
  workspace_folders = { { uri = vim.uri_from_fname(folder), name = "session" } },
})
vim.lsp.buf_attach_client(0, id)

local function say(text) io.stdout:write(text .. "\n") end

local function fail(text)
  say("failed: " .. text)
  vim.cmd("cquit 1")
end

-- wait for diagnostics that satisfy a condition
local function diagnostics(ok)
  local all
  if not vim.wait(60000, function()
    all = vim.diagnostic.get(0)
    return ok(all)
  end, 20) then
    fail("no diagnostics: " .. vim.inspect(all))
  end
  table.sort(all, function(a, b) return a.lnum < b.lnum end)
  return all
end

local function show(all)
  for _, d in ipairs(all) do
    say(string.format("%d:%d %s [%s]", d.lnum + 1, d.col + 1, (d.message:gsub("\n", " -- ")), d.code or d.user_data.lsp.code))
  end
end

local function request(method, params)
  local answers = vim.lsp.buf_request_sync(0, method, params, 60000)
  local answer = answers and answers[id]
  if not answer or answer.error then fail(method .. ": " .. vim.inspect(answer)) end
  return answer.result
end

local function has(code)
  return function(all)
    for _, d in ipairs(all) do
      if (d.code or d.user_data.lsp.code) == code then return true end
    end
    return false
  end
end

say("== diagnostics")
show(diagnostics(has("field-unknown")))

say("== completion after 'spec:'")
vim.api.nvim_buf_set_lines(0, 5, 5, false, { "  " })
vim.api.nvim_win_set_cursor(0, { 6, 1 })
local params = vim.lsp.util.make_position_params()
params.position = { line = 5, character = 2 }
local items = request("textDocument/completion", params).items
table.sort(items, function(a, b) return a.sortText < b.sortText end)
for _, item in ipairs(items) do say(item.label .. ": " .. (item.detail or "")) end
vim.api.nvim_buf_set_lines(0, 5, 6, false, {})

say("== fix")
local at = { line = 6, character = 2 }
local actions = request("textDocument/codeAction", {
  textDocument = vim.lsp.util.make_text_document_params(),
  range = { start = at, ["end"] = at },
  context = { diagnostics = {} },
})
say(actions[1].title)
vim.lsp.util.apply_workspace_edit(actions[1].edit, "utf-16")
local fixed = diagnostics(function(all) return not has("field-unknown")(all) end)
show(fixed)

say("== file")
for _, line in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, false)) do say(line) end
vim.lsp.stop_client(id)
vim.cmd("qall!")
