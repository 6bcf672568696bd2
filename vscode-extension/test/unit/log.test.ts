import assert from 'node:assert/strict';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { describe, it } from 'node:test';
import { forwardServerLog } from '../../src/log';
import { recordingLog } from './support';

async function forwarded(...written: string[]): Promise<string[]> {
  const { log, lines } = recordingLog();
  const input = new PassThrough();
  forwardServerLog(input, log);
  for (const piece of written) {
    input.write(piece);
  }
  input.end();
  await once(input, 'close');
  return lines;
}

describe('forwardServerLog', () => {
  it('keeps the level that a line names, and leaves its date to the channel', async () => {
    const lines = await forwarded(
      '2026-01-02 03:04:05,678 INFO inductoscope.pool: worker ',
      'started\r\n2026-01-02 03:04:05,900 WARNING inductoscope.app: late\n',
    );
    assert.deepEqual(lines, ['info: inductoscope.pool: worker started', 'warn: inductoscope.app: late']);
  });

  it('keeps a traceback with its line', async () => {
    const lines = await forwarded('2026-01-02 03:04:05,678 INFO a: it broke\nTraceback (most recent call last):\n');
    assert.deepEqual(lines, ['info: a: it broke', 'info: Traceback (most recent call last):']);
  });

  it('takes what no server wrote for an error', async () => {
    assert.deepEqual(await forwarded('python: command not found\n'), ['error: python: command not found']);
  });
});
