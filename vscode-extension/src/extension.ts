/**
 * Entry point: puts the parts together and names what makes the server start anew.  No logic of its own.
 */
import * as vscode from 'vscode';
import { Client } from './client';
import { registerCommands } from './commands';
import { pythonExtension } from './interpreter';
import { createLog } from './log';
import { ID } from './names';
import { StatusItem } from './status';

let client: Client | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const log = createLog();
  const status = new StatusItem();
  const server = new Client(context.extension, log, status);
  client = server;
  context.subscriptions.push(
    log,
    status,
    ...registerCommands({ extension: context.extension, client: server, status, log }),
    vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration(ID) && server.refresh()),
    vscode.workspace.onDidChangeWorkspaceFolders(() => server.refresh()),
    vscode.workspace.onDidGrantWorkspaceTrust(() => server.restart()),
  );
  const python = await pythonExtension();
  if (python) {
    context.subscriptions.push(python.environments.onDidChangeActiveEnvironmentPath(() => server.refresh()));
  }
  void server.restart(); // the editor need not wait for it
}

export function deactivate(): Promise<void> | undefined {
  return client?.stop();
}
