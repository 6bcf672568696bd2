// Bundles the extension into dist/extension.js, or (with `tests`) the unit tests into dist/test, where the editor's API
// is the hand-made fake.
import { readdirSync } from 'node:fs';
import path from 'node:path';
import esbuild from 'esbuild';

const shared = { bundle: true, platform: 'node', format: 'cjs', target: 'node20', logLevel: 'warning' };

if (process.argv.includes('tests')) {
  const tests = readdirSync('test/unit').filter((name) => name.endsWith('.test.ts'));
  await esbuild.build({
    ...shared,
    entryPoints: tests.map((name) => path.join('test/unit', name)),
    outdir: 'dist/test',
    alias: { vscode: './test/unit/vscode.ts', 'vscode-languageclient/node': './test/unit/languageclient.ts' },
    sourcemap: 'inline',
  });
} else {
  await esbuild.build({
    ...shared,
    entryPoints: ['src/extension.ts'],
    outfile: 'dist/extension.js',
    external: ['vscode'],
    minify: true,
    sourcemap: false,
  });
}
