import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { CancellationToken } from 'vscode';
import { middleware } from '../../src/middleware';
import * as fake from './vscode';

const TOKEN = {} as CancellationToken;
const REPORT = 'inductoscope-artifact:/project/model.py/Model.forward/report.md';

describe('middleware', () => {
  beforeEach(() => {
    fake.reset();
  });

  it('answers for our own section and folder itself and leaves other sections to the editor', async () => {
    fake.workspace.workspaceFolders = [fake.folder('/project')];
    fake.state.settings['inductoscope.device'] = 'cpu';
    fake.state.settings['/project:inductoscope.device'] = 'sim:H200';
    const items = [
      { section: 'inductoscope' },
      { section: 'inductoscope', scopeUri: 'file:///project' },
      { section: 'editor' },
    ];
    const answers = await middleware.workspace?.configuration?.({ items }, TOKEN, ({ items: asked }) =>
      asked.map(({ section }) => `the editor's ${section ?? ''}`),
    );
    assert.deepEqual(answers, [{ device: 'cpu' }, { device: 'sim:H200' }, "the editor's editor"]);
  });

  const show = async (uri: string) => {
    const passedOn: string[] = [];
    const answer = await middleware.window?.showDocument?.({ uri }, TOKEN, (parameters) => {
      passedOn.push(parameters.uri);
      return { success: true };
    });
    assert.deepEqual(answer, { success: true });
    return passedOn;
  };

  it('shows a report as a preview beside the program', async () => {
    assert.deepEqual(await show(REPORT), []);
    assert.deepEqual(
      fake.state.executed.map(({ command, args }) => [command, String(args[0])]),
      [['markdown.showPreviewToSide', String(fake.Uri.parse(REPORT))]],
    );
  });

  it('opens other documents, and a report without a preview, as the editor does', async () => {
    const kernel = REPORT.replace('report.md', 'kernel.py');
    const readme = 'file:///project/README.md';
    assert.deepEqual([await show(kernel), await show(readme)], [[kernel], [readme]]);
    fake.state.registered.set('markdown.showPreviewToSide', () => {
      throw new Error('command not found');
    });
    assert.deepEqual(await show(REPORT), [REPORT]);
  });
});
