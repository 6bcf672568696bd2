/**
 * The commands of the palette.  Those that need the compiler's knowledge are handed to the server.
 */
import * as vscode from 'vscode';
import type { Client } from './client';
import { debugInformation } from './debugInformation';
import type { Log } from './log';
import { COMMANDS } from './names';
import { SERVER_COMMANDS, type Status, type TargetArgument, type TargetStatus } from './protocol';
import type { StatusItem } from './status';

export interface Parts {
  readonly extension: vscode.Extension<unknown>;
  readonly client: Client;
  readonly status: StatusItem;
  readonly log: Log;
}

export function registerCommands(parts: Parts): vscode.Disposable[] {
  const { client, status, log } = parts;
  const handlers: Record<(typeof COMMANDS)[keyof typeof COMMANDS], () => unknown> = {
    [COMMANDS.restartServer]: () => client.restart(),
    [COMMANDS.showLogs]: () => log.show(),
    [COMMANDS.debugInformation]: () => showDebugInformation(parts),
    [COMMANDS.checkFile]: () => checkFile(),
    [COMMANDS.benchmarkTarget]: () => onTarget(SERVER_COMMANDS.benchmark, status.status),
    [COMMANDS.showTargetKernels]: () => onTarget(SERVER_COMMANDS.showKernels, status.status),
  };
  return Object.entries(handlers).map(([name, handler]) => vscode.commands.registerCommand(name, handler));
}

async function checkFile(): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (editor) {
    await vscode.commands.executeCommand(SERVER_COMMANDS.check, { uri: editor.document.uri.toString() });
  }
}

async function onTarget(serverCommand: string, status: Status | undefined): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (!editor) {
    return;
  }
  const target = targetAt(status?.targets ?? [], editor.document.uri, editor.selection.active.line + 1);
  if (target) {
    const argument: TargetArgument = { uri: target.uri, target: target.name };
    await vscode.commands.executeCommand(serverCommand, argument);
  } else {
    void vscode.window.showInformationMessage(
      'Inductoscope sees nothing to compile in this file: no torch.compile, and no nn.Module with known inputs.',
    );
  }
}

/** The target that a line (1-based) belongs to: the last one defined at or above it, else the first of the document. */
export function targetAt(
  targets: readonly TargetStatus[],
  document: vscode.Uri,
  line: number,
): TargetStatus | undefined {
  const here = targets
    .filter((target) => vscode.Uri.parse(target.uri).toString() === document.toString())
    .sort((a, b) => a.line - b.line);
  return here.findLast((target) => target.line <= line) ?? here[0];
}

async function showDebugInformation(parts: Parts): Promise<void> {
  const content = await debugInformation(parts.extension, parts.client.command, parts.status.status);
  await vscode.window.showTextDocument(await vscode.workspace.openTextDocument({ language: 'markdown', content }));
}
