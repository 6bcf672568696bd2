/**
 * The life of the language server: find its command line, start it, follow settings, restart it, stop it.
 *
 * One server serves all folders of the window.  Starts and stops are queued, so that a restart in the middle of a start
 * cannot leave two servers.  What the server says is not interpreted here.
 */
import * as vscode from 'vscode';
import {
  DidChangeConfigurationNotification,
  LanguageClient,
  type LanguageClientOptions,
  RevealOutputChannelOn,
  State,
} from 'vscode-languageclient/node';
import { findInterpreter, InterpreterError, pythonExtension } from './interpreter';
import { forwardServerLog, type Log } from './log';
import { middleware } from './middleware';
import { ID } from './names';
import {
  ARTIFACT_SCHEME,
  type InitializationOptions,
  SERVER_COMMANDS,
  type Status,
  STATUS_NOTIFICATION,
} from './protocol';
import { type ImportStrategy, probe, type ServerCommand, serverCommand, ServerError } from './server';
import type { StatusItem } from './status';

export class Client implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private running: ServerCommand | undefined;
  private queue: Promise<void> = Promise.resolve();
  private complaint: string | undefined;

  constructor(
    private readonly extension: vscode.Extension<unknown>,
    private readonly log: Log,
    private readonly status: StatusItem,
  ) {}

  /** The command line of the running server, undefined where there is none. */
  get command(): ServerCommand | undefined {
    return this.running;
  }

  /** Starts the server, or starts it anew where it runs already. */
  restart(): Promise<void> {
    this.complaint = undefined; // the user asked: a failure is worth saying again
    return this.enqueue(async () => this.replace(await this.chooseCommand()));
  }

  /** Something that the server depends on changed: tell it, or start another one where its command line changed. */
  refresh(): Promise<void> {
    return this.enqueue(async () => {
      const command = await this.chooseCommand();
      if (this.client?.isRunning() && JSON.stringify(command) === JSON.stringify(this.running)) {
        await this.client.sendNotification(DidChangeConfigurationNotification.type, { settings: null });
      } else {
        await this.replace(command);
      }
    });
  }

  stop(): Promise<void> {
    return this.enqueue(() => this.end());
  }

  dispose(): void {
    void this.stop();
  }

  private enqueue(step: () => Promise<void>): Promise<void> {
    this.queue = this.queue.then(step).catch((error: unknown) => this.report(error));
    return this.queue;
  }

  private async chooseCommand(): Promise<ServerCommand> {
    const folder = vscode.workspace.workspaceFolders?.[0];
    const interpreter = await findInterpreter(folder);
    if (!interpreter) {
      throw new ServerError('No Python interpreter was found. Inductoscope needs Python 3.10 or newer: choose one.');
    }
    const strategy = vscode.workspace.getConfiguration(ID).get<ImportStrategy>('importStrategy', 'fromEnvironment');
    const found = await probe(interpreter.command, this.extension.extensionPath);
    const command = serverCommand(interpreter.command, found, strategy, this.extension.extensionPath);
    this.log.info(`interpreter (${interpreter.source}): ${interpreter.command.join(' ')}`);
    return command;
  }

  private async replace(command: ServerCommand): Promise<void> {
    await this.end();
    this.status.starting();
    this.log.info(`server (${command.origin}): ${[command.command, ...command.args].join(' ')}`);
    const client = this.create(command);
    this.client = client;
    await client.start();
    this.running = command;
    this.complaint = undefined;
    await vscode.commands.executeCommand('setContext', `${ID}.running`, true);
    this.compareVersions(client.initializeResult?.serverInfo?.version);
  }

  private async end(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    this.running = undefined;
    await vscode.commands.executeCommand('setContext', `${ID}.running`, false);
    await client?.dispose().catch((error: unknown) => this.log.warn('the server did not end in order', error));
  }

  private create(command: ServerCommand): LanguageClient {
    const options = { cwd: this.extension.extensionPath }; // not the user's folder: see `probe`
    const executable = { command: command.command, args: [...command.args], options };
    const client = new LanguageClient(ID, 'Inductoscope', executable, this.options());
    client.onNotification(STATUS_NOTIFICATION, (status: Status) => this.status.update(status));
    client.onDidChangeState(({ newState }) => this.stateChanged(client, newState));
    return client;
  }

  private options(): LanguageClientOptions {
    const initializationOptions = (): InitializationOptions => ({ trusted: vscode.workspace.isTrusted, status: true });
    return {
      documentSelector: [
        { language: 'python', scheme: 'file' },
        { language: 'python', scheme: 'untitled' },
        { scheme: ARTIFACT_SCHEME },
      ],
      initializationOptions,
      initializationFailedHandler: () => false, // `start` rejects, and `report` says why, once
      outputChannel: this.log,
      traceOutputChannel: this.log,
      stdioOptions: { stdout: forwardServerLog, stderr: forwardServerLog },
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      markdown: { isTrusted: { enabledCommands: Object.values(SERVER_COMMANDS) } },
      middleware,
    };
  }

  private stateChanged(client: LanguageClient, state: State): void {
    if (client !== this.client) {
      return; // one that was replaced
    }
    if (state === State.Starting) {
      this.status.starting();
    } else if (state === State.Stopped) {
      this.status.failed('The language server ended. Restart it; the log says more.');
    }
  }

  private compareVersions(server: string | undefined): void {
    const own = (this.extension.packageJSON as { readonly version: string }).version;
    if (server !== undefined && server !== own) {
      this.log.warn(`server ${server} and extension ${own} differ: update the older one if something is missing`);
    }
  }

  /** One message for one failure, however often it is met again by changes that do not mend it. */
  private async report(error: unknown): Promise<void> {
    const why = error instanceof Error ? error.message : String(error);
    this.log.error(error instanceof Error ? error : why);
    await this.end();
    this.status.failed(why);
    if (why === this.complaint) {
      return;
    }
    this.complaint = why;
    const known = error instanceof ServerError || error instanceof InterpreterError;
    void offerRemedy(
      known ? `Inductoscope: ${why}` : `Inductoscope: the language server did not start. ${why}`,
      this.log,
    );
  }
}

async function offerRemedy(message: string, log: Log): Promise<void> {
  const choose = 'Choose Interpreter';
  const show = 'Show Logs';
  const chosen = await vscode.window.showErrorMessage(message, choose, show);
  if (chosen === show) {
    log.show();
  } else if (chosen === choose) {
    const configured = vscode.workspace.getConfiguration(ID).get<string[]>('interpreter', []).length > 0;
    if (!configured && (await pythonExtension())) {
      await vscode.commands.executeCommand('python.setInterpreter');
    } else {
      await vscode.commands.executeCommand('workbench.action.openSettings', `${ID}.interpreter`);
    }
  }
}
