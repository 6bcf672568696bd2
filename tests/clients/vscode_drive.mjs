// Drives a real VS Code workbench (served by code-server, shown in headless Chromium)
// so that an extension and its language server can be tested as a person would use them.
// See README.md. Lines and columns in this file's API are 1-based, as the editor
// shows them; what `probe` and `api` take and give is 0-based, as the protocol has it.

import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const HERE = path.dirname(fileURLToPath(import.meta.url));
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

export const BASE_SETTINGS = {
  'workbench.startupEditor': 'none',
  'workbench.enableExperiments': false,
  'workbench.tips.enabled': false,
  'workbench.secondarySideBar.defaultVisibility': 'hidden',
  'telemetry.telemetryLevel': 'off',
  'extensions.autoCheckUpdates': false,
  'extensions.autoUpdate': false,
  'extensions.ignoreRecommendations': true,
  'chat.disableAIFeatures': true,
  'remote.autoForwardPorts': false,
  'files.autoSave': 'off',
  'editor.fontFamily': 'DejaVu Sans Mono, monospace',
  'editor.minimap.enabled': false,
  'editor.stickyScroll.enabled': false,
  'editor.wordWrap': 'off',
  'editor.hover.delay': 100,
  'editor.accessibilitySupport': 'off',
  'workbench.reduceMotion': 'on',
};

const TRUST_SETTINGS = {
  all: { 'security.workspace.trust.enabled': false },
  none: { 'security.workspace.trust.startupPrompt': 'never', 'security.workspace.trust.banner': 'never' },
};

export const CHROMIUM_ARGS = [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync',
];

export function cacheFolder() {
  return process.env.CLIENTS_CACHE || path.join(process.env.XDG_CACHE_HOME || path.join(os.homedir(), '.cache'), 'editor-clients');
}

/** What install.sh laid in the cache for one workbench version. */
export function manifest({ cache = cacheFolder(), version = process.env.WORKBENCH_VERSION || '4.139.1' } = {}) {
  const file = path.join(cache, `manifest-${version}.json`);
  if (!fs.existsSync(file)) throw new Error(`no ${file}: the editors are not installed, run "make clients" first (workbench ${version})`);
  return JSON.parse(fs.readFileSync(file, 'utf8'));
}

export async function until(what, fn, { timeout = 20000, every = 100 } = {}) {
  const end = Date.now() + timeout;
  let last;
  for (;;) {
    try {
      last = await fn();
      if (last) return last;
    } catch (e) {
      last = e;
    }
    if (Date.now() > end) {
      const seen = last instanceof Error ? last.message : JSON.stringify(last);
      throw new Error(`timed out after ${timeout} ms waiting for ${what}${seen === undefined ? '' : ` (last: ${String(seen).slice(0, 400)})`}`);
    }
    await sleep(every);
  }
}

async function freePort() {
  const s = net.createServer();
  await new Promise((r) => s.listen(0, '127.0.0.1', r));
  const { port } = s.address();
  await new Promise((r) => s.close(r));
  return port;
}

const matches = (text, want) => (want === undefined ? true : want instanceof RegExp ? want.test(text) : text.includes(want));

// Process groups that this process started; ended by id when it goes, however it goes.
const groups = new Set();
const endGroup = (pid, signal) => {
  try {
    process.kill(-pid, signal);
  } catch {
    /* gone */
  }
};
process.on('exit', () => groups.forEach((pid) => endGroup(pid, 'SIGKILL')));
for (const s of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(s, () => process.exit(130));

const groupAlive = (pid) => {
  try {
    process.kill(-pid, 0);
    return true;
  } catch {
    return false;
  }
};

/**
 * Starts the server side, installs the extensions, opens the workbench on a folder.
 *
 * options:
 *   folder       workspace folder (required)
 *   extensions   list of .vsix files and/or unpacked extension folders (package.json with "main" built)
 *   settings     user settings, over BASE_SETTINGS
 *   keybindings  array for keybindings.json
 *   version      workbench version that install.sh installed (or WORKBENCH_VERSION)
 *   cache        cache folder (or CLIENTS_CACHE)
 *   env          extra environment for the extension host and what it starts; the home folder is a
 *                fresh one unless env.HOME is given
 *   viewport     {width, height}, default 1280 x 800
 *   scale        pixels of a picture for each pixel of the viewport, default 1
 *   logDir       copies server, browser and extension host logs there on close, and a picture on failure
 *   timeout      for starting, default 90 s
 *   probe        false: leave the helper extension out (then only what reads the page works)
 *   trust        'all' (default): no trust is asked for; 'none': the folder opens in restricted mode
 */
export async function launchWorkbench(options) {
  const m = manifest(options);
  const wb = new Workbench(m, options);
  try {
    await wb._start();
  } catch (e) {
    await wb._failed('start', e);
    await wb.close();
    throw e;
  }
  return wb;
}

/** launchWorkbench, run fn(wb), and close in any case; on failure a picture goes to logDir. */
export async function withWorkbench(options, fn) {
  const wb = await launchWorkbench(options);
  try {
    return await fn(wb);
  } catch (e) {
    await wb._failed('test', e);
    throw e;
  } finally {
    await wb.close();
  }
}

export class Workbench {
  constructor(m, options) {
    if (!options?.folder) throw new Error('options.folder is required');
    this.m = m;
    this.o = { extensions: [], settings: {}, env: {}, viewport: { width: 1280, height: 800 }, timeout: 90000, probe: true, trust: 'all', scale: 1, ...options };
    this.folder = path.resolve(this.o.folder);
    this.home = fs.mkdtempSync(path.join(os.tmpdir(), 'wb-'));
    this.userData = path.join(this.home, 'user-data');
    this.extensionsDir = path.join(this.home, 'extensions');
    this.serverLog = '';
    this.consoleLog = [];
    this.times = {};
  }

  // ---------------------------------------------------------------- start and stop

  async _start() {
    const t0 = Date.now();
    const mark = (k) => (this.times[k] = Date.now() - t0);
    fs.mkdirSync(path.join(this.userData, 'User'), { recursive: true });
    fs.mkdirSync(this.extensionsDir);
    fs.writeFileSync(path.join(this.userData, 'User', 'settings.json'), JSON.stringify({ ...BASE_SETTINGS, ...TRUST_SETTINGS[this.o.trust], ...this.o.settings }, null, 2));
    if (this.o.keybindings) fs.writeFileSync(path.join(this.userData, 'User', 'keybindings.json'), JSON.stringify(this.o.keybindings));
    const config = path.join(this.home, 'config.yaml');
    fs.writeFileSync(config, 'auth: none\n');
    this.probeFile = path.join(this.home, 'probe.json');
    this.env = {
      ...process.env,
      HOME: this.home,
      XDG_CONFIG_HOME: path.join(this.home, '.config'),
      XDG_DATA_HOME: path.join(this.home, '.local', 'share'),
      XDG_CACHE_HOME: path.join(this.home, '.cache'),
      VSCODE_CLI: '1', // as from a shell: the environment is taken as it is, no login shell is asked for another
      EXTENSIONS_GALLERY: '{"serviceUrl":""}', // no marketplace, so no calls to one
      ...(this.o.probe ? { EDITOR_PROBE_FILE: this.probeFile } : {}),
      ...this.o.env,
    };
    const base = [this.m.workbench, '--config', config, '--user-data-dir', this.userData, '--extensions-dir', this.extensionsDir];

    // Folders first: a fresh extensions folder is scanned once, when its index is made.
    const folders = this.o.extensions.filter((e) => !e.endsWith('.vsix')).map((e) => path.resolve(e));
    if (this.o.probe) folders.push(path.join(HERE, 'probe'));
    for (const f of folders) {
      const p = JSON.parse(fs.readFileSync(path.join(f, 'package.json'), 'utf8'));
      fs.cpSync(f, path.join(this.extensionsDir, `${p.publisher}.${p.name}-${p.version}`.toLowerCase()), { recursive: true, dereference: true });
    }
    for (const v of this.o.extensions.filter((e) => e.endsWith('.vsix'))) {
      const r = spawnSync(this.m.node, [...base, '--install-extension', path.resolve(v)], { env: this.env, encoding: 'utf8' });
      if (r.status !== 0 || !/successfully installed/.test(r.stdout)) throw new Error(`could not install ${v}: ${r.stdout}${r.stderr}`);
    }
    mark('installed');

    this.port = await freePort();
    const args = [...base, '--bind-addr', `127.0.0.1:${this.port}`, '--disable-telemetry', '--disable-update-check', '--disable-getting-started-override', '--ignore-last-opened'];
    if (this.o.trust === 'all') args.push('--disable-workspace-trust');
    this.proc = spawn(this.m.node, args, { env: this.env, cwd: this.folder, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    groups.add(this.proc.pid);
    for (const s of [this.proc.stdout, this.proc.stderr]) s.on('data', (d) => (this.serverLog += d));
    await until('the workbench server', async () => {
      if (this.proc.exitCode !== null) throw new Error(`server ended: ${this.serverLog.slice(-800)}`);
      return (await fetch(`http://127.0.0.1:${this.port}/healthz`)).ok;
    }, { timeout: this.o.timeout });
    mark('server');

    const { chromium } = createRequire(path.join(this.m.driver, 'x.js'))('playwright-core');
    this.browser = await chromium.launch({ executablePath: this.m.chromium, args: CHROMIUM_ARGS });
    this.context = await this.browser.newContext({ viewport: this.o.viewport, deviceScaleFactor: this.o.scale, permissions: ['clipboard-read', 'clipboard-write'] });
    this.page = await this.context.newPage();
    this.page.setDefaultTimeout(20000);
    // Nothing but the local server: what the workbench asks of the outside fails at once.
    await this.context.route((u) => u.hostname !== '127.0.0.1' && !u.hostname.endsWith('.localhost') && /^(http|ws)/.test(u.protocol), (r) => r.abort());
    this.page.on('console', (c) => this.consoleLog.push(`[${c.type()}] ${c.text()}`));
    this.page.on('pageerror', (e) => this.consoleLog.push(`[pageerror] ${e.message}`));

    const payload = [['skipWelcome', 'true'], ['skipReleaseNotes', 'true']];
    this.url = `http://127.0.0.1:${this.port}/?folder=${encodeURIComponent(this.folder)}&payload=${encodeURIComponent(JSON.stringify(payload))}`;
    await this.page.goto(this.url);
    await this.page.waitForSelector('.monaco-workbench .part.editor', { timeout: this.o.timeout });
    mark('workbench');
    if (this.o.probe) {
      this.info = await until('the extension host', () => this.probe('ping'), { timeout: this.o.timeout });
      mark('extensionHost');
    }
  }

  async _failed(where, e) {
    if (!this.o.logDir) return;
    fs.mkdirSync(this.o.logDir, { recursive: true });
    fs.writeFileSync(path.join(this.o.logDir, `failure-${where}.txt`), `${e?.stack ?? e}\n`);
    await this.page?.screenshot({ path: path.join(this.o.logDir, `failure-${where}.png`) }).catch(() => {});
  }

  /** Reloads the window: a new extension host, and so a new language server. */
  reload() {
    return this._again(() => this.page.reload());
  }

  /** Opens another workspace folder in the same window; cheaper than a new launch. */
  openFolder(folder) {
    this.folder = path.resolve(folder);
    const u = new URL(this.url);
    u.searchParams.set('folder', this.folder);
    this.url = u.href;
    return this._again(() => this.page.goto(this.url));
  }

  async _again(go) {
    const old = this.o.probe ? this.info.pid : undefined;
    await go();
    await this.page.waitForSelector('.monaco-workbench .part.editor', { timeout: this.o.timeout });
    if (this.o.probe) {
      this.info = await until('the new extension host', async () => {
        const i = await this.probe('ping');
        return i.pid !== old && i;
      }, { timeout: this.o.timeout });
    }
  }

  /** Closes the page first, so that extensions are told to stop and can end their servers in order. */
  async close({ grace = 4000 } = {}) {
    if (this.closed) return;
    this.closed = true;
    const host = this.info?.pid;
    await this.page?.close({ runBeforeUnload: false }).catch(() => {});
    await this.browser?.close().catch(() => {});
    if (host) {
      await until('', () => { try { process.kill(host, 0); return false; } catch { return true; } }, { timeout: grace, every: 50 }).catch(() => {});
    }
    if (this.proc) {
      endGroup(this.proc.pid, 'SIGTERM');
      await until('', () => !groupAlive(this.proc.pid), { timeout: grace, every: 50 }).catch(() => endGroup(this.proc.pid, 'SIGKILL'));
      groups.delete(this.proc.pid);
    }
    if (this.o.logDir) {
      fs.mkdirSync(this.o.logDir, { recursive: true });
      fs.writeFileSync(path.join(this.o.logDir, 'server.log'), this.serverLog);
      fs.writeFileSync(path.join(this.o.logDir, 'browser-console.log'), this.consoleLog.join('\n'));
      const logs = path.join(this.userData, 'logs');
      if (fs.existsSync(logs)) fs.cpSync(logs, path.join(this.o.logDir, 'workbench-logs'), { recursive: true });
    }
    if (!this.o.keep) fs.rmSync(this.home, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }

  // ---------------------------------------------------------------- inside the extension host

  /** One question to the helper extension; see probe/extension.js for the list. */
  async probe(op, params = {}) {
    const { port, token } = JSON.parse(fs.readFileSync(this.probeFile, 'utf8'));
    const r = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers: { 'x-probe-token': token }, body: JSON.stringify({ op, ...params }) });
    const j = await r.json();
    if ('error' in j) throw new Error(`${op}: ${j.error}`);
    return j.result;
  }

  path(file) {
    return /^[a-z][a-z0-9+.-]+:/i.test(file) ? file : path.resolve(this.folder, file);
  }

  /** Any command by id, with JSON arguments ({$uri}, {$pos}, {$range} are revived). */
  command(id, ...args) {
    return this.probe('command', { id, args });
  }

  /** What the editor's API answers, with every provider asked: exact, and not bound to the screen. */
  api = {
    diagnostics: (file) => this.probe('diagnostics', file ? { file: this.path(file) } : {}),
    hover: (file, line, character) => this.command('vscode.executeHoverProvider', { $uri: this.path(file) }, { $pos: [line, character] }),
    codeLenses: (file, resolve = 1000) => this.command('vscode.executeCodeLensProvider', { $uri: this.path(file) }, resolve),
    inlayHints: (file, range = [0, 0, 1e6, 0]) => this.command('vscode.executeInlayHintProvider', { $uri: this.path(file) }, { $range: range }),
    codeActions: (file, range, kind) => this.command('vscode.executeCodeActionProvider', { $uri: this.path(file) }, { $range: range }, kind ?? null, 1000),
    definition: (file, line, character) => this.command('vscode.executeDefinitionProvider', { $uri: this.path(file) }, { $pos: [line, character] }),
    references: (file, line, character) => this.command('vscode.executeReferenceProvider', { $uri: this.path(file) }, { $pos: [line, character] }),
    symbols: (file) => this.command('vscode.executeDocumentSymbolProvider', { $uri: this.path(file) }),
    completions: (file, line, character, trigger) => this.command('vscode.executeCompletionItemProvider', { $uri: this.path(file) }, { $pos: [line, character] }, trigger ?? null),
    format: (file) => this.command('vscode.executeFormatDocumentProvider', { $uri: this.path(file) }, { tabSize: 4, insertSpaces: true }),
    semanticTokens: (file) => this.command('vscode.provideDocumentSemanticTokens', { $uri: this.path(file) }),
    text: (file) => this.probe('text', { file: this.path(file) }),
    edit: (file, edits) => this.probe('edit', { file: this.path(file), edits }),
    extensions: () => this.probe('extensions'),
    setting: (section, value, target) => this.probe('setting', { section, value, target }),
  };

  // ---------------------------------------------------------------- moving about

  async openFile(file, { line, col = 1 } = {}) {
    const r = await this.probe('open', { file: this.path(file) });
    await until(`the editor on ${file}`, () => this.page.evaluate(() => !!document.querySelector('.editor-group-container.active .editor-instance .monaco-editor .view-line')));
    if (line) await this.moveTo(line, col);
    return r;
  }

  /** Puts the cursor at a place (or a selection over a range) and scrolls there. */
  async moveTo(line, col = 1, endLine = line, endCol = col) {
    await this.probe('select', { range: [line - 1, col - 1, endLine - 1, endCol - 1] });
    await this.command('workbench.action.focusActiveEditorGroup');
    await until(`line ${line} on screen`, async () => (await this.lines()).some((l) => l.line === line), { timeout: 5000 });
  }

  async type(text) {
    await this.command('workbench.action.focusActiveEditorGroup');
    await this.page.keyboard.type(text);
  }

  press(keys) {
    return this.page.keyboard.press(keys);
  }

  activeText() {
    return this.probe('active').then((a) => a?.text ?? null);
  }

  save() {
    return this.probe('save');
  }

  /** Through the command palette, by the title a person would type. */
  async runFromPalette(title) {
    await this.page.keyboard.press('F1');
    await this.page.locator('.quick-input-widget input').first().waitFor({ state: 'visible' });
    await this.page.keyboard.type(title);
    const row = this.page.locator('.quick-input-list .monaco-list-row', { hasText: title }).first();
    await row.waitFor({ state: 'visible' });
    await row.click();
  }

  // ---------------------------------------------------------------- what is on the screen

  /**
   * The visible lines of the active editor: number, text as shown, and the parts that are not
   * in the document (injected: inlay hints; attached: before/after decorations), underlines and
   * code lenses. Everything is read from the page.
   */
  async lines({ editor = 0 } = {}) {
    return this.page.evaluate((which) => {
      const group = document.querySelector('.editor-group-container.active') ?? document;
      const ed = [...group.querySelectorAll('.editor-instance .monaco-editor')].filter((e) => e.querySelector('.view-lines'))[which];
      if (!ed) return [];
      const top = (e) => Math.round(parseFloat(e.style.top || '0'));
      const nums = new Map();
      for (const row of ed.querySelectorAll('.margin-view-overlays > div')) {
        const n = row.querySelector('.line-numbers');
        const v = n ? parseInt(n.textContent, 10) : NaN;
        nums.set(top(row), { line: Number.isNaN(v) ? null : v, glyphs: [...row.querySelectorAll('[class*="codicon"], .cgmr')].map((g) => g.className) });
      }
      const marks = new Map();
      for (const row of ed.querySelectorAll('.view-overlays > div')) {
        marks.set(top(row), [...row.querySelectorAll('.cdr')].map((d) => ({ cls: d.className.replace(/\bcdr\b/, '').trim(), left: parseFloat(d.style.left), width: parseFloat(d.style.width) })));
      }
      const out = [];
      const rows = [...ed.querySelectorAll('.view-lines > .view-line')].sort((a, b) => top(a) - top(b));
      for (const row of rows) {
        const inner = row.querySelector(':scope > span');
        const x0 = inner ? inner.getBoundingClientRect().left : 0;
        const clean = (s) => s.replace(/\u00a0/g, ' ').replace(/[\u200b\u200c]/g, '');
        const chars = [];
        let col = 1;
        let text = '';
        let shown = '';
        const injected = [];
        const attached = [];
        for (const span of inner ? inner.querySelectorAll(':scope > span') : []) {
          const isInjected = /(^|\s)dyn-rule-/.test(span.className);
          const t = clean(span.textContent);
          shown += t;
          for (const side of ['::before', '::after']) {
            const c = getComputedStyle(span, side).content;
            if (c && c !== 'none' && c !== 'normal') attached.push({ at: text.length + 1, side: side.slice(2), text: c.replace(/^"|"$/g, '') });
          }
          if (isInjected) {
            if (t) injected.push({ col: text.length + 1, text: t });
            continue;
          }
          const walker = document.createTreeWalker(span, NodeFilter.SHOW_TEXT);
          for (let n = walker.nextNode(); n; n = walker.nextNode()) {
            let i = 0;
            for (const ch of n.data) {
              const from = i;
              i += ch.length;
              if (/[\u200b\u200c]/.test(ch)) continue;
              const r = document.createRange();
              r.setStart(n, from);
              r.setEnd(n, i);
              const b = r.getBoundingClientRect();
              chars.push({ x: b.left - x0 + b.width / 2, ch: clean(ch), col });
              col += ch.length;
            }
          }
          text += t;
        }
        const at = top(row);
        const n = nums.get(at) ?? { line: null, glyphs: [] };
        const wave = [];
        const styles = [];
        for (const d of marks.get(at) ?? []) {
          const under = chars.filter((c) => c.x >= d.left && c.x <= d.left + d.width);
          const first = under.length ? under[0].col : col;
          const over = under.map((c) => c.ch).join('');
          const m = /squiggly-(error|warning|info|hint)|squiggly-(inline-unnecessary|inline-deprecated|unnecessary)/.exec(d.cls);
          if (m) wave.push({ severity: m[1] ?? m[2], col: first, text: over });
          else styles.push({ cls: d.cls, col: first, text: over });
        }
        out.push({ line: n.line, top: at, text, shown, injected, attached, squiggles: wave, decorations: styles, glyphs: n.glyphs, lenses: [] });
      }
      // continuation rows of a wrapped line carry no number
      for (let i = 1; i < out.length; i++) if (out[i].line === null) out[i].line = out[i - 1].line;
      for (const lens of ed.querySelectorAll('.codelens-decoration')) {
        if (lens.style.visibility === 'hidden' || lens.style.display === 'none') continue;
        const titles = [...lens.children].filter((c) => (c.tagName === 'A' || c.tagName === 'SPAN') && c.textContent.trim() && c.textContent.trim() !== '|').map((c) => c.textContent.replace(/\u00a0/g, ' ').trim());
        const line = out.find((l) => l.top > top(lens));
        if (line && titles.length) line.lenses.push(...titles);
      }
      return out;
    }, editor);
  }

  async squiggles(filter = {}) {
    const all = (await this.lines()).flatMap((l) => l.squiggles.map((s) => ({ line: l.line, ...s })));
    return all.filter((s) => (!filter.severity || s.severity === filter.severity) && (!filter.line || s.line === filter.line) && matches(s.text, filter.text));
  }

  /** Waits until an underline is really drawn. filter: {severity: 'error'|'warning'|'info'|'hint', line, text} */
  async waitForSquiggle(filter = {}, { timeout = 20000 } = {}) {
    return until(`a squiggle ${JSON.stringify(filter)}`, async () => (await this.squiggles(filter))[0], { timeout });
  }

  async waitForNoSquiggle(filter = {}, { timeout = 20000 } = {}) {
    await until(`no squiggle ${JSON.stringify(filter)}`, async () => (await this.squiggles(filter)).length === 0, { timeout });
  }

  /** Code lenses drawn on screen: [{line, titles}] */
  async codeLenses() {
    return (await this.lines()).filter((l) => l.lenses.length).map((l) => ({ line: l.line, titles: l.lenses }));
  }

  async waitForCodeLens(title, { line, timeout = 20000 } = {}) {
    return until(`a code lens ${title}`, async () => (await this.codeLenses()).find((l) => (!line || l.line === line) && l.titles.some((t) => matches(t, title))), { timeout });
  }

  async clickCodeLens(title, { line, timeout = 20000 } = {}) {
    const seen = await this.waitForCodeLens(title, { line, timeout });
    const spot = await this.page.evaluate(({ titles, want, source, flags }) => {
      const group = document.querySelector('.editor-group-container.active') ?? document;
      const hit = (t) => (source ? new RegExp(source, flags).test(t) : t.includes(want));
      for (const lens of group.querySelectorAll('.codelens-decoration')) {
        const own = [...lens.querySelectorAll('a')];
        if (!titles.every((t) => lens.textContent.replace(/\u00a0/g, ' ').includes(t))) continue;
        const a = own.find((x) => hit(x.textContent.replace(/\u00a0/g, ' ').trim()));
        if (a) {
          const b = a.getBoundingClientRect();
          return { x: b.left + b.width / 2, y: b.top + b.height / 2 };
        }
      }
      return null;
    }, { titles: seen.titles, want: String(title), source: title instanceof RegExp ? title.source : '', flags: title instanceof RegExp ? title.flags : '' });
    if (!spot) throw new Error(`code lens ${title} has no command, so it cannot be clicked`);
    await this.page.mouse.click(spot.x, spot.y);
    return seen;
  }

  /** Inlay hints drawn on screen: [{line, col, text}]; col is where the hint stands in the document. */
  async inlayHints() {
    return (await this.lines()).flatMap((l) => joinHints(l.injected).map((i) => ({ line: l.line, col: i.col, text: i.text })));
  }

  async waitForInlayHint(text, { line, timeout = 20000 } = {}) {
    return until(`an inlay hint ${text}`, async () => (await this.inlayHints()).find((h) => (!line || h.line === line) && matches(h.text, text)), { timeout });
  }

  /** Where a document position is on screen, in pixels. */
  async pixelAt(line, col) {
    await this.moveTo(line, col);
    const box = await until('the cursor', () => this.page.evaluate(() => {
      const c = document.querySelector('.editor-group-container.active .monaco-editor .cursors-layer .cursor');
      const b = c?.getBoundingClientRect();
      return b && b.height ? { x: b.left, y: b.top, h: b.height } : null;
    }));
    return { x: box.x + 3, y: box.y + box.h / 2 };
  }

  /**
   * Shows the hover at a place and reads it: {text, parts, html}. With mouse: true the pointer is
   * moved there, as a person does; else the cursor is put there and the show-hover command is run.
   */
  async hover(line, col, { mouse = false, keep = false, expect, timeout = 15000 } = {}) {
    await this.dismiss();
    if (mouse) {
      const p = await this.pixelAt(line, col);
      await this.page.mouse.move(p.x + 60, p.y + 120);
      await this.page.mouse.move(p.x, p.y, { steps: 4 });
    } else {
      await this.moveTo(line, col);
      await this.command('editor.action.showHover', { focus: 'noAutoFocus' });
    }
    const read = () => this.page.evaluate(() => {
      const box = [...document.querySelectorAll('.monaco-resizable-hover .monaco-hover, .monaco-editor .monaco-hover')].find((h) => !h.classList.contains('hidden') && h.getBoundingClientRect().height > 0);
      if (!box) return null;
      const rows = [...box.querySelectorAll('.hover-row:not(.status-bar)')];
      const parts = rows.map((r) => r.innerText.trim()).filter(Boolean);
      if (!parts.length || parts.every((p) => /^Loading/.test(p))) return null;
      return { text: parts.join('\n'), parts, html: rows.map((r) => r.innerHTML).join('\n') };
    });
    // Providers answer one by one: wait until the text stands still (or holds what was expected).
    const got = await until(`a hover at ${line}:${col}${expect ? ` with ${expect}` : ''}`, async () => {
      const a = await read();
      if (!a) return null;
      if (expect) return matches(a.text, expect) && a;
      await sleep(250);
      const b = await read();
      return b && b.text === a.text && b;
    }, { timeout });
    if (!keep) await this.dismiss();
    return got;
  }

  /** Opens the quick fix menu at a place and gives the titles in it ([] when there are none). */
  async codeActions(line, col, { endLine, endCol, keep = false, refactor = false, timeout = 15000 } = {}) {
    await this.dismiss();
    await this.moveTo(line, col, endLine, endCol);
    await this.command(refactor ? 'editor.action.refactor' : 'editor.action.quickFix');
    const titles = await until('the code action menu', () => this.page.evaluate(() => {
      const none = [...document.querySelectorAll('.monaco-editor-overlaymessage')].some((m) => /no .*(code actions?|refactorings?|quick fixes)/i.test(m.textContent));
      const w = [...document.querySelectorAll('.action-widget')].find((e) => e.getBoundingClientRect().height > 0 && e.querySelector('.monaco-list-row'));
      if (w) {
        const t = [...w.querySelectorAll('.monaco-list-row.action')].map((r) => (r.querySelector('.title') ?? r).textContent.replace(/\u00a0/g, ' ').trim());
        return t.length ? t : null;
      }
      return none ? [] : null;
    }), { timeout });
    if (!keep) await this.dismiss();
    return titles;
  }

  /** Picks one code action by its title from the menu and waits until the menu is gone. */
  async runCodeAction(line, col, title, options = {}) {
    const titles = await this.codeActions(line, col, { ...options, keep: true });
    const want = titles.find((t) => matches(t, title));
    if (!want) throw new Error(`no code action ${title} at ${line}:${col}; there are: ${JSON.stringify(titles)}`);
    // By pointer, moving first: a transparent sheet lies over a fresh menu until the mouse moves.
    const box = await this.page.locator('.action-widget .monaco-list-row.action').nth(titles.indexOf(want)).boundingBox();
    const x = box.x + Math.min(40, box.width / 2);
    const y = box.y + box.height / 2;
    await this.page.mouse.move(x + 3, y);
    await this.page.mouse.move(x, y, { steps: 2 });
    await sleep(100);
    await this.page.mouse.click(x, y);
    await until('the menu to close', async () => (await this.page.locator('.action-widget .monaco-list-row.action:visible').count()) === 0, { timeout: 5000 });
    return want;
  }

  /** Opens the suggest list at a place and gives the labels on screen. */
  async completions(line, col, { keep = false, timeout = 15000 } = {}) {
    await this.dismiss();
    await this.moveTo(line, col);
    await this.command('editor.action.triggerSuggest');
    const list = await until('suggestions', () => this.page.evaluate(() => {
      const w = document.querySelector('.suggest-widget.visible');
      const rows = w ? [...w.querySelectorAll('.monaco-list-row')] : [];
      return rows.length ? rows.map((r) => (r.querySelector('.monaco-icon-name-container') ?? r).textContent.trim()) : null;
    }), { timeout });
    if (!keep) await this.dismiss();
    return list;
  }

  /** The Problems panel as drawn: [{file, severity, message, source, code, line, col}] */
  async problems({ keep = false } = {}) {
    await this.command('workbench.actions.view.problems');
    await this.page.waitForSelector('.markers-panel-container', { state: 'visible' });
    const rows = await until('the Problems panel to settle', async () => {
      const a = await this._problemRows();
      await sleep(250);
      const b = await this._problemRows();
      return JSON.stringify(a) === JSON.stringify(b) && b;
    });
    if (!keep) await this.command('workbench.action.closePanel');
    return rows;
  }

  _problemRows() {
    return this.page.evaluate(() => {
      const out = [];
      let file = null;
      const rows = [...document.querySelectorAll('.markers-panel-container .monaco-list-row')].sort((a, b) => +a.dataset.index - +b.dataset.index);
      for (const r of rows) {
        const label = r.querySelector('.resource-label-container .monaco-icon-label');
        if (label) {
          file = label.getAttribute('aria-label') || label.textContent;
          continue;
        }
        const icon = r.querySelector('.marker-icon');
        if (!icon) continue;
        const pos = /\[Ln (\d+), Col (\d+)\]/.exec(r.textContent) ?? [];
        const aria = r.getAttribute('aria-label') ?? '';
        out.push({
          file,
          severity: (/^(Error|Warning|Info|Hint)/.exec(aria)?.[1] ?? icon.className.replace(/marker-icon|quickFix/g, '').trim()).toLowerCase(),
          message: [...r.querySelectorAll('.marker-message')].map((x) => x.textContent).join('\n'),
          source: r.querySelector('.marker-source')?.textContent ?? null,
          code: r.querySelector('.marker-code')?.textContent ?? null,
          line: pos[1] ? +pos[1] : null,
          col: pos[2] ? +pos[2] : null,
        });
      }
      return out;
    });
  }

  /** Texts of the notifications on screen. */
  notifications() {
    return this.page.evaluate(() => [...document.querySelectorAll('.notifications-toasts .notification-list-item')].map((n) => ({
      text: n.querySelector('.notification-list-item-message')?.textContent ?? '',
      buttons: [...n.querySelectorAll('.notification-list-item-buttons-container .monaco-button')].map((b) => b.textContent),
    })));
  }

  async waitForNotification(text, { timeout = 15000 } = {}) {
    return until(`a notification ${text}`, async () => (await this.notifications()).find((n) => matches(n.text, text)), { timeout });
  }

  async clickNotificationButton(text, button) {
    await this.waitForNotification(text);
    await this.page.locator('.notification-list-item', { hasText: text }).locator('.monaco-button', { hasText: button }).first().click();
  }

  /** Items of the open quick pick; pick(label) chooses one. */
  quickPick() {
    return this.page.evaluate(() => {
      const w = document.querySelector('.quick-input-widget');
      return !w || w.style.display === 'none' ? null : [...w.querySelectorAll('.quick-input-list .monaco-list-row')].map((r) => (r.querySelector('.monaco-icon-name-container') ?? r).textContent.trim());
    });
  }

  async pick(label) {
    const row = this.page.locator('.quick-input-list .monaco-list-row', { hasText: label }).first();
    await row.waitFor({ state: 'visible' });
    await row.click();
  }

  statusBar() {
    return this.page.evaluate(() => [...document.querySelectorAll('.statusbar-item')].map((i) => ({ id: i.id, text: i.textContent.trim(), label: i.getAttribute('aria-label') ?? '' })).filter((i) => i.text || i.label));
  }

  /** Titles of the open editor tabs; the active one first. */
  tabs() {
    return this.page.evaluate(() => [...document.querySelectorAll('.tabs-container .tab')].sort((a, b) => b.classList.contains('active') - a.classList.contains('active')).map((t) => t.dataset.resourceName || (t.querySelector('.monaco-icon-name-container') ?? t).textContent.trim()));
  }

  /** Waits until the active editor's tab has that title. */
  waitForTab(title, { timeout = 20000 } = {}) {
    return until(`a tab ${title}`, async () => {
      const [active] = await this.tabs();
      return active !== undefined && matches(active, title) && active;
    }, { timeout });
  }

  /** Waits until the text of the active document matches, and gives it. */
  waitForActiveText(text, { timeout = 20000 } = {}) {
    return until(`an active document with ${text}`, async () => {
      const active = await this.activeText();
      return active !== null && matches(active, text) && active;
    }, { timeout });
  }

  /** The innermost frame of a webview whose text matches. */
  async webview(text, { timeout = 20000 } = {}) {
    return until(`a webview with ${text}`, async () => {
      for (const f of this.page.frames()) {
        if (f === this.page.mainFrame() || f.childFrames().length) continue;
        const t = await f.evaluate(() => document.body?.innerText ?? '').catch(() => '');
        if (t && matches(t, text)) return f;
      }
      return null;
    }, { timeout });
  }

  /** Output channels of extensions, from the log files: {name: text}. Needs WORKBENCH_LOGS=1 at install. */
  outputs() {
    const out = {};
    const walk = (d) => {
      for (const e of fs.existsSync(d) ? fs.readdirSync(d, { withFileTypes: true }) : []) {
        const f = path.join(d, e.name);
        if (e.isDirectory()) walk(f);
        else if (e.name.endsWith('.log') && /exthost/.test(f)) {
          const name = e.name.replace(/^\d+-/, '').replace(/\.log$/, '');
          out[name] = (out[name] ?? '') + fs.readFileSync(f, 'utf8');
        }
      }
    };
    walk(path.join(this.userData, 'logs'));
    return out;
  }

  /** Puts hovers, menus and lists away. */
  async dismiss() {
    const open = () => this.page.evaluate(() => [...document.querySelectorAll('.monaco-resizable-hover .monaco-hover, .action-widget, .suggest-widget.visible')].some((e) => !e.classList.contains('hidden') && e.getBoundingClientRect().height > 0));
    for (let i = 0; i < 3 && (await open()); i++) {
      await this.page.keyboard.press('Escape');
      await sleep(120);
    }
  }

  async screenshot(file, { selector } = {}) {
    fs.mkdirSync(path.dirname(path.resolve(file)), { recursive: true });
    await sleep(300); // fade-ins
    if (selector) await this.page.locator(selector).first().screenshot({ path: file });
    else await this.page.screenshot({ path: file });
    return path.resolve(file);
  }
}

// One hint with several label parts is drawn as several pieces at one place.
function joinHints(pieces) {
  const out = [];
  for (const p of pieces) {
    const last = out[out.length - 1];
    if (last && last.col === p.col) last.text += p.text;
    else out.push({ ...p });
  }
  return out;
}
