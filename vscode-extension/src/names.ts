/**
 * The names that the manifest declares.  Commands of the server have names of their own (`protocol.ts`): a name can be
 * registered once only.
 */
export const COMMANDS = {
  restartServer: 'inductoscope.restartServer',
  showLogs: 'inductoscope.showLogs',
  debugInformation: 'inductoscope.debugInformation',
  checkFile: 'inductoscope.checkFile',
  benchmarkTarget: 'inductoscope.benchmarkTarget',
  showTargetKernels: 'inductoscope.showTargetKernels',
} as const;

/** The extension's and the language client's identifier, and the settings' prefix. */
export const ID = 'inductoscope';
