/**
 * The language status item: what the server said last about itself, or why there is no server.
 */
import * as vscode from 'vscode';
import { COMMANDS } from './names';
import type { Status } from './protocol';

const SEVERITY = {
  ok: vscode.LanguageStatusSeverity.Information,
  warning: vscode.LanguageStatusSeverity.Warning,
  error: vscode.LanguageStatusSeverity.Error,
} as const;

export class StatusItem implements vscode.Disposable {
  private readonly item: vscode.LanguageStatusItem;
  private last: Status | undefined;

  constructor() {
    this.item = vscode.languages.createLanguageStatusItem('inductoscope.status', { language: 'python' });
    this.item.name = 'Inductoscope';
    this.starting();
  }

  /** The latest status, undefined while no server has said anything. */
  get status(): Status | undefined {
    return this.last;
  }

  starting(): void {
    this.last = undefined;
    this.show('ok', 'Inductoscope', 'starting', true);
  }

  /** The server said something about itself. */
  update(status: Status): void {
    this.last = status;
    this.show(status.health, text(status), status.message, !status.quiescent);
  }

  /** There is no server; `why` is one sentence for the user. */
  failed(why: string): void {
    this.last = undefined;
    this.show('error', 'Inductoscope', why, false);
  }

  private show(health: keyof typeof SEVERITY, label: string, detail: string, busy: boolean): void {
    this.item.severity = SEVERITY[health];
    this.item.text = label;
    this.item.detail = detail;
    this.item.busy = busy;
    this.item.command =
      health === 'error'
        ? { title: 'Restart', command: COMMANDS.restartServer }
        : { title: 'Show Logs', command: COMMANDS.showLogs };
  }

  dispose(): void {
    this.item.dispose();
  }
}

function text(status: Status): string {
  if (!status.trusted) {
    return 'Inductoscope: restricted';
  }
  const running = status.targets.find((target) => target.state === 'checking' || target.state === 'measuring');
  return running ? `Inductoscope: ${running.state} ${running.name}` : 'Inductoscope';
}
