import assert from 'node:assert/strict';
import path from 'node:path';
import { beforeEach, describe, it } from 'node:test';
import type { WorkspaceFolder } from 'vscode';
import manifest from '../../package.json';
import { COMMANDS } from '../../src/names';
import { SERVER_SETTINGS, serverSettings } from '../../src/settings';
import { interpreterAt, temporaryFolder } from './support';
import * as fake from './vscode';

describe('serverSettings', () => {
  beforeEach(() => {
    fake.reset();
  });

  it('hands over what was set and keeps defaults to itself', async () => {
    fake.state.defaults['inductoscope.device'] = 'auto';
    fake.state.defaults['inductoscope.rung'] = 'assemble';
    fake.state.settings['inductoscope.rung'] = 'capture';
    fake.state.settings['inductoscope.hide'] = [];
    assert.deepEqual(await serverSettings(undefined), { rung: 'capture', hide: [] });
  });

  it("prefers the folder's own value", async () => {
    const folder = fake.folder('/project') as unknown as WorkspaceFolder;
    fake.state.settings['inductoscope.device'] = 'cpu';
    fake.state.settings['/project:inductoscope.device'] = 'sim:H200';
    assert.deepEqual(await serverSettings(folder), { device: 'sim:H200' });
    assert.deepEqual(await serverSettings(undefined), { device: 'cpu' });
  });

  it('names the interpreter only where the server could not find it by itself', async () => {
    const root = temporaryFolder();
    interpreterAt(path.join(root, '.venv', 'bin', 'python'));
    const folder = fake.folder(root) as unknown as WorkspaceFolder;
    assert.deepEqual(await serverSettings(folder), {});
    fake.state.settings['inductoscope.interpreter'] = ['${workspaceFolder}/.venv/bin/python'];
    assert.deepEqual(await serverSettings(folder), { interpreter: [path.join(root, '.venv', 'bin', 'python')] });
  });

  it('hands a wrong interpreter over as it is, so that no other one runs the program', async () => {
    fake.state.settings['inductoscope.interpreter'] = ['/nowhere/python'];
    assert.deepEqual(await serverSettings(undefined), { interpreter: ['/nowhere/python'] });
  });
});

describe('the manifest', () => {
  it('declares each setting that the server reads', () => {
    const declared = Object.keys(manifest.contributes.configuration.properties);
    const own = ['interpreter', 'importStrategy', 'trace.server'];
    assert.deepEqual(declared.sort(), [...SERVER_SETTINGS, ...own].map((name) => `inductoscope.${name}`).sort());
  });

  it('declares each command that is registered', () => {
    const declared = manifest.contributes.commands.map(({ command }) => command);
    assert.deepEqual(declared.sort(), Object.values(COMMANDS).sort());
  });
});
