/**
 * A small stand-in for `vscode-languageclient/node`: clients that remember what was asked of them.
 */
export enum State {
  Stopped = 1,
  Running = 2,
  Starting = 3,
}

export enum RevealOutputChannelOn {
  Never = 4,
}

export const DidChangeConfigurationNotification = { type: 'workspace/didChangeConfiguration' };

export class LanguageClient {
  /** Every client since the last `forget`. */
  static made: LanguageClient[] = [];
  /** What the next start fails with. */
  static failure: Error | undefined;
  static serverVersion = '0.1.0';

  readonly sent: string[] = [];
  readonly handlers = new Map<string, (parameters: unknown) => void>();
  state: 'new' | 'running' | 'disposed' = 'new';
  initializeResult = { serverInfo: { name: 'inductoscope', version: LanguageClient.serverVersion } };
  private stateListener: ((change: { newState: State }) => void) | undefined;

  constructor(
    readonly id: string,
    readonly name: string,
    readonly executable: { command: string; args: string[]; options: { cwd: string } },
    readonly options: { initializationOptions: () => unknown },
  ) {
    LanguageClient.made.push(this);
  }

  static forget(): void {
    LanguageClient.made = [];
    LanguageClient.failure = undefined;
    LanguageClient.serverVersion = '0.1.0';
  }

  static running(): LanguageClient[] {
    return LanguageClient.made.filter((client) => client.state === 'running');
  }

  async start(): Promise<void> {
    await Promise.resolve();
    if (LanguageClient.failure) {
      throw LanguageClient.failure;
    }
    this.state = 'running';
  }

  dispose(): Promise<void> {
    this.state = 'disposed';
    return Promise.resolve();
  }

  isRunning(): boolean {
    return this.state === 'running';
  }

  sendNotification(method: string): Promise<void> {
    this.sent.push(method);
    return Promise.resolve();
  }

  onNotification(method: string, handler: (parameters: never) => void): void {
    this.handlers.set(method, handler as (parameters: unknown) => void);
  }

  onDidChangeState(listener: (change: { newState: State }) => void): void {
    this.stateListener = listener;
  }

  /** The server ended by itself. */
  end(): void {
    this.state = 'disposed';
    this.stateListener?.({ newState: State.Stopped });
  }
}
