// The extension starts `espalier lsp` and connects it to the editor. Everything else is in the server.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

function start() {
  const settings = vscode.workspace.getConfiguration("espalier");
  client = new LanguageClient(
    "espalier",
    "Espalier",
    { command: settings.get("path") || "espalier", args: ["lsp"] },
    {
      documentSelector: [
        { scheme: "file", language: "yaml" },
        { scheme: "untitled", language: "yaml" },
        { scheme: "file", language: "json" },
      ],
      initializationOptions: {
        crds: settings.get("crds"),
        cluster: { context: settings.get("cluster.context"), kubeconfig: settings.get("cluster.kubeconfig") },
        severity: settings.get("severity"),
        ignoreMissing: settings.get("ignoreMissing"),
        kubernetesVersion: settings.get("kubernetesVersion"),
      },
      // The server reads the section when it changes.
      synchronize: { configurationSection: "espalier" },
    },
  );
  return client.start().catch((error) => {
    vscode.window.showErrorMessage(`Starting espalier failed: ${error.message}. Install it, or set espalier.path.`);
  });
}

async function stop() {
  const running = client;
  client = undefined;
  if (running) {
    await running.stop();
  }
}

function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("espalier.restart", async () => {
      await stop();
      await start();
    }),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration("espalier.path")) {
        await stop();
        await start();
      }
    }),
  );
  return start();
}

module.exports = { activate, deactivate: stop };
