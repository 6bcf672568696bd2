/**
 * What the language server speaks beyond LSP, as `docs/lsp-extensions.md` describes it.  Names and shapes only.
 */
export interface InitializationOptions {
  readonly trusted: boolean;
  readonly status: true;
}

export type TargetState = 'waiting' | 'checking' | 'measuring' | 'checked' | 'failed' | 'no-inputs' | 'not-run';

export interface TargetStatus {
  readonly uri: string;
  readonly name: string;
  /** 1-based line of the definition. */
  readonly line: number;
  readonly state: TargetState;
  readonly summary: string;
  readonly stale: boolean;
}

export interface Status {
  readonly health: 'ok' | 'warning' | 'error';
  /** False while anything runs or is about to. */
  readonly quiescent: boolean;
  readonly message: string;
  readonly torch: string | null;
  readonly triton: string | null;
  readonly python: string | null;
  readonly interpreter: string | null;
  readonly device: string | null;
  readonly trusted: boolean;
  readonly targets: readonly TargetStatus[];
}

/** Notification from the server; its parameters are a `Status`. */
export const STATUS_NOTIFICATION = 'inductoscope/status';

/** The scheme of documents that the server makes: kernels and reports. */
export const ARTIFACT_SCHEME = 'inductoscope-artifact';

/** Commands that the server announces; the language client registers them under these names by itself. */
export const SERVER_COMMANDS = {
  check: 'inductoscope.check',
  benchmark: 'inductoscope.benchmark',
  showKernels: 'inductoscope.showKernels',
  restart: 'inductoscope.restart',
} as const;

/** The argument of a server command that is about one target. */
export interface TargetArgument {
  readonly uri: string;
  readonly target: string;
}
