import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { Status } from '../../src/protocol';
import { StatusItem } from '../../src/status';
import * as fake from './vscode';

const IDLE: Status = {
  health: 'ok',
  quiescent: true,
  message: 'torch 2.13.0, H200 (simulated)',
  torch: '2.13.0',
  triton: null,
  python: '3.12.1',
  interpreter: '/usr/bin/python3',
  device: 'sim:H200',
  trusted: true,
  targets: [],
};

describe('StatusItem', () => {
  beforeEach(() => {
    fake.reset();
  });
  const shown = () => {
    const [item = {}] = fake.state.statusItems;
    const { text, detail, busy, severity, command } = item;
    return { text, detail, busy, severity, action: (command as { title: string }).title };
  };

  it('says that the server is starting', () => {
    new StatusItem();
    assert.deepEqual([shown().detail, shown().busy], ['starting', true]);
  });

  it('shows what the server said, and remembers it', () => {
    const item = new StatusItem();
    item.update(IDLE);
    assert.deepEqual(shown(), {
      text: 'Inductoscope',
      detail: 'torch 2.13.0, H200 (simulated)',
      busy: false,
      severity: fake.LanguageStatusSeverity.Information,
      action: 'Show Logs',
    });
    assert.equal(item.status, IDLE);
  });

  it('names the target that is being worked on', () => {
    const target = { uri: 'file:///a.py', name: 'Model.forward', line: 3, summary: '', stale: false } as const;
    const item = new StatusItem();
    item.update({ ...IDLE, quiescent: false, targets: [{ ...target, state: 'measuring' }] });
    assert.deepEqual([shown().text, shown().busy], ['Inductoscope: measuring Model.forward', true]);
  });

  it('shows restricted mode', () => {
    new StatusItem().update({ ...IDLE, trusted: false });
    assert.equal(shown().text, 'Inductoscope: restricted');
  });

  it('offers a restart after a failure, and forgets what no longer holds', () => {
    const item = new StatusItem();
    item.update(IDLE);
    item.failed('The language server ended.');
    assert.deepEqual(
      [shown().severity, shown().detail, shown().action, shown().busy],
      [fake.LanguageStatusSeverity.Error, 'The language server ended.', 'Restart', false],
    );
    assert.equal(item.status, undefined);
  });
});
