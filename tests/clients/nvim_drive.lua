-- Drives a real Neovim (headless) as a client of a language server. See README.md.
-- Works with Neovim 0.7 up to 0.11 and later; what a version lacks answers nil.
-- Lines and columns are 1-based (columns in bytes, as Neovim counts); what raw requests take
-- and give is the protocol's own.

local M = {}
local has = function(v) return vim.fn.has('nvim-' .. v) == 1 end
local uv = vim.uv or vim.loop

-- ------------------------------------------------------------------ small tools

--- Runs the event loop until fn() is truthy; errors with `what` when time is up.
function M.wait(what, fn, timeout)
  local got
  local ok = vim.wait(timeout or 10000, function()
    got = fn()
    return got
  end, 20)
  if not ok then error(('timed out after %d ms waiting for %s'):format(timeout or 10000, what), 0) end
  return got
end

local function same(a, b)
  if type(a) ~= 'table' or type(b) ~= 'table' then return a == b end
  for k, v in pairs(a) do if not same(v, b[k]) then return false end end
  for k in pairs(b) do if a[k] == nil then return false end end
  return true
end

function M.eq(got, want, what)
  if not same(got, want) then
    error(('%s\n  got:  %s\n  want: %s'):format(what or 'not equal', vim.inspect(got), vim.inspect(want)), 2)
  end
end

function M.has(text, part, what)
  if not (text and string.find(text, part, 1, true)) then
    error(('%s: %q is not in %s'):format(what or 'text', part, vim.inspect(text)), 2)
  end
end

local results = { passed = 0, failed = 0 }

--- One named check; a failure is printed and counted, and the run goes on.
function M.test(name, fn)
  local t0 = uv.hrtime()
  local ok, err = xpcall(fn, debug.traceback)
  results[ok and 'passed' or 'failed'] = results[ok and 'passed' or 'failed'] + 1
  io.stdout:write(('%s - %s (%.2f s)\n'):format(ok and 'ok' or 'not ok', name, (uv.hrtime() - t0) / 1e9))
  if not ok then io.stdout:write('  ' .. tostring(err):gsub('\n', '\n  ') .. '\n') end
  io.stdout:flush()
  return ok
end

--- Prints the closing line and ends Neovim with 0 or 1.
function M.finish()
  io.stdout:write(('%d passed, %d failed\n'):format(results.passed, results.failed))
  io.stdout:flush()
  vim.cmd(results.failed == 0 and results.passed > 0 and 'qall!' or 'cquit 1')
end

local function here(level)
  return vim.fn.fnamemodify(debug.getinfo((level or 1) + 1, 'S').source:sub(2), ':p:h')
end
M.here = here

local function flat(contents)
  if contents == nil then return nil end
  if type(contents) == 'string' then return contents end
  if contents.value then return contents.value end
  local out = {}
  for _, c in ipairs(contents) do out[#out + 1] = type(c) == 'string' and c or c.value end
  return table.concat(out, '\n')
end

-- ------------------------------------------------------------------ a session

local S = {}
S.__index = S

--- Sets a server up for a file type, as a user's init.lua does.
--- o: cmd (list), root (folder), filetypes (default {'python'}), name, settings, init_options,
---    capabilities (table laid over the client's own), env (table), timeout (ms)
function M.start(o)
  local self = setmetatable({ o = o, name = o.name or 'server', messages = {}, progress = {}, log = {}, notes = {}, timeout = o.timeout or 10000 }, S)
  vim.cmd('filetype plugin indent on')
  vim.o.swapfile = false
  vim.o.hidden = true
  vim.o.updatetime = 50
  vim.o.columns = 120
  vim.o.lines = 40
  vim.lsp.set_log_level(o.log_level or 'warn')
  self.root = vim.fn.fnamemodify(o.root or vim.fn.getcwd(), ':p'):gsub('/$', '')
  local caps = vim.lsp.protocol.make_client_capabilities()
  if o.capabilities then caps = vim.tbl_deep_extend('force', caps, o.capabilities) end

  local keep = function(list) return function(_, r) list[#list + 1] = r end end
  local handlers = {
    ['window/showMessage'] = keep(self.messages),
    ['window/logMessage'] = keep(self.log),
    ['window/showMessageRequest'] = function(_, r)
      self.messages[#self.messages + 1] = r
      local want = self.answer
      for _, a in ipairs(r.actions or {}) do if a.title == want then return a end end
      return vim.NIL
    end,
  }
  local default_progress = vim.lsp.handlers['$/progress']
  handlers['$/progress'] = function(err, r, ctx, config)
    self.progress[#self.progress + 1] = r
    if default_progress then return default_progress(err, r, ctx, config) end
  end
  for k, v in pairs(o.handlers or {}) do handlers[k] = v end

  local config = {
    name = self.name,
    cmd = o.cmd,
    cmd_env = o.env,
    cmd_cwd = self.root,
    root_dir = self.root,
    workspace_folders = not vim.lsp.enable and { { uri = vim.uri_from_fname(self.root), name = self.root } } or nil,
    settings = o.settings or vim.empty_dict(),
    init_options = o.init_options,
    capabilities = caps,
    handlers = handlers,
    filetypes = o.filetypes or { 'python' },
    on_exit = function(code, signal) self.exit = { code = code, signal = signal } end,
    on_error = function(code, err) self.error = { code = code, err = err } end,
  }
  if vim.lsp.config and vim.lsp.enable then
    vim.lsp.config(self.name, config)
    vim.lsp.enable(self.name)
  else
    -- before 0.11: started and attached by a FileType autocommand
    vim.api.nvim_create_autocmd('FileType', {
      pattern = config.filetypes,
      callback = function(ev)
        if not self.id then self.id = vim.lsp.start_client(config) end
        vim.lsp.buf_attach_client(ev.buf or vim.api.nvim_get_current_buf(), self.id)
      end,
    })
  end
  return self
end

local function clients(filter)
  local all = vim.lsp.get_clients and vim.lsp.get_clients() or vim.lsp.get_active_clients()
  return vim.tbl_filter(filter, all)
end

function S:client()
  return clients(function(c) return c.name == self.name end)[1]
end

--- The encoding that client and server agreed on.
function S:encoding()
  return self:client().offset_encoding
end

function S:capabilities()
  return self:client().server_capabilities
end

--- Opens a file and waits until the server is attached and initialized.
function S:open(file)
  if not file:match('^%a[%w+.-]*://') and file:sub(1, 1) ~= '/' then file = self.root .. '/' .. file end
  vim.cmd('edit ' .. vim.fn.fnameescape(file))
  self.buf = vim.api.nvim_get_current_buf()
  if vim.bo[self.buf].filetype == '' then vim.cmd('filetype detect') end
  M.wait('the server to be ready', function()
    if self.exit then error(('the server ended: %s'):format(vim.inspect(self.exit)), 0) end
    local c = self:client()
    return c and c.initialized and vim.lsp.buf_is_attached(self.buf, c.id)
  end, self.timeout)
  return self.buf
end

function S:uri() return vim.uri_from_bufnr(self.buf) end
function S:text() return table.concat(vim.api.nvim_buf_get_lines(self.buf, 0, -1, false), '\n') end

--- Puts the cursor at a place (1-based line, 1-based byte column).
function S:at(line, col)
  vim.api.nvim_set_current_buf(self.buf)
  vim.api.nvim_win_set_cursor(0, { line, (col or 1) - 1 })
end

--- Replaces one line, which the client sends on as a change.
function S:set_line(line, text)
  vim.api.nvim_buf_set_lines(self.buf, line - 1, line, false, { text })
end

--- One raw request, as the client sends it; answers result, error.
function S:request(method, params, timeout)
  local c, done, result, err = self:client(), false, nil, nil
  local cb = function(e, r) done, err, result = true, e, r end
  local sent, id
  if has('0.11') then sent, id = c:request(method, params, cb, self.buf) else sent, id = c.request(method, params, cb, self.buf) end
  if not sent then error('could not send ' .. method, 2) end
  M.wait('an answer to ' .. method, function() return done end, timeout or self.timeout)
  return result, err, id
end

--- Sends a request and cancels it after ms. Neovim drops the answer to a request that it
--- cancelled, so whether the server really stopped must be seen on the server's side.
function S:request_cancelled(method, params, ms)
  local c, early = self:client(), false
  local cb = function() early = true end
  local _, id
  if has('0.11') then _, id = c:request(method, params, cb, self.buf) else _, id = c.request(method, params, cb, self.buf) end
  vim.wait(ms or 100, function() return early end, 10)
  if early then error(method .. ' was answered before it could be cancelled', 2) end
  if has('0.11') then c:cancel_request(id) else c.cancel_request(id) end
end

function S:notify(method, params)
  local c = self:client()
  if has('0.11') then return c:notify(method, params) end
  return c.notify(method, params)
end

--- Parameters for a position request at the cursor, in the agreed encoding.
function S:position()
  return vim.lsp.util.make_position_params(0, self:encoding())
end

-- ------------------------------------------------------------------ diagnostics

local SEVERITY = { 'error', 'warning', 'info', 'hint' }

--- [{line, col, end_line, end_col, severity, message, source, code}]
function S:diagnostics()
  return vim.tbl_map(function(d)
    return { line = d.lnum + 1, col = d.col + 1, end_line = d.end_lnum + 1, end_col = d.end_col + 1, severity = SEVERITY[d.severity], message = d.message,
      source = d.source, code = d.code or vim.tbl_get(d, 'user_data', 'lsp', 'code') }
  end, vim.diagnostic.get(self.buf))
end

--- Waits until there are at least n diagnostics (or exactly none, for n = 0).
function S:wait_diagnostics(n, timeout)
  n = n or 1
  M.wait(('%d diagnostic(s)'):format(n), function()
    local c = #vim.diagnostic.get(self.buf)
    if n == 0 then return c == 0 end
    return c >= n
  end, timeout or self.timeout)
  return self:diagnostics()
end

-- Every namespace, the unnamed ones that diagnostics are drawn in included: name -> id.
local function namespaces()
  local out = {}
  for name, id in pairs(vim.api.nvim_get_namespaces()) do out[name] = id end
  for id, ns in pairs(vim.diagnostic.get_namespaces()) do
    local u = ns.user_data or {}
    if u.underline_ns then out[('diagnostic/underline/%d'):format(id)] = u.underline_ns end
    if u.virt_text_ns then out[('diagnostic/virtual_text/%d'):format(id)] = u.virt_text_ns end
  end
  return out
end

local function marks_of(buf)
  local out, seen = {}, {}
  for name, ns in pairs(namespaces()) do
    if not seen[ns] then
      seen[ns] = true
      for _, m in ipairs(vim.api.nvim_buf_get_extmarks(buf, ns, 0, -1, { details = true })) do
        out[#out + 1] = { name = name, line = m[2] + 1, col = m[3] + 1, details = m[4] }
      end
    end
  end
  table.sort(out, function(a, b) return a.line < b.line or (a.line == b.line and a.col < b.col) end)
  return out
end

--- The underlines that are drawn: [{line, col, end_col, hl}]
function S:underlines()
  local out = {}
  for _, m in ipairs(marks_of(self.buf)) do
    local hl = m.details.hl_group
    if hl and tostring(hl):match('DiagnosticUnderline') then
      out[#out + 1] = { line = m.line, col = m.col, end_col = (m.details.end_col or m.col - 1) + 1, hl = hl }
    end
  end
  return out
end

-- ------------------------------------------------------------------ what a user asks for

local function floats()
  return vim.tbl_filter(function(w) return vim.api.nvim_win_get_config(w).relative ~= '' end, vim.api.nvim_list_wins())
end

--- Runs the user's hover at a place and reads the floating window.
function S:hover(line, col)
  for _, w in ipairs(floats()) do vim.api.nvim_win_close(w, true) end
  self:at(line, col)
  vim.lsp.buf.hover()
  local w = M.wait(('a hover at %d:%d'):format(line, col), function() return floats()[1] end, self.timeout)
  local text = table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(w), 0, -1, false), '\n')
  vim.api.nvim_win_close(w, true)
  return text
end

--- The server's own hover answer: its contents as text.
function S:hover_raw(line, col)
  self:at(line, col)
  local r, e = self:request('textDocument/hover', self:position())
  if e then error(vim.inspect(e), 2) end
  return r and flat(r.contents)
end

--- Code lenses after a refresh: [{line, title, lens}]
function S:code_lenses(timeout)
  vim.api.nvim_set_current_buf(self.buf)
  if has('0.12') and vim.lsp.codelens.enable then vim.lsp.codelens.enable(true, { bufnr = self.buf }) else vim.lsp.codelens.refresh() end
  local get = function()
    local out = {}
    local list = has('0.12') and vim.lsp.codelens.get({ bufnr = self.buf }) or vim.lsp.codelens.get(self.buf)
    for _, l in ipairs(list or {}) do
      local lens = l.lens or l
      if lens.command then out[#out + 1] = { line = lens.range.start.line + 1, title = lens.command.title, lens = lens } end
    end
    table.sort(out, function(a, b) return a.line < b.line end)
    return #out > 0 and out
  end
  M.wait('code lenses', get, timeout or self.timeout)
  return get()
end

--- Runs one lens as the user does: the cursor goes to its line, and it is chosen by its title.
function S:run_code_lens(title)
  local hit
  for _, l in ipairs(self:code_lenses()) do if l.title:find(title, 1, true) then hit = hit or l end end
  if not hit then error('no code lens ' .. title, 2) end
  self:at(hit.line, 1)
  self:choosing(title, vim.lsp.codelens.run)
  return hit
end

--- Runs fn with every choice list answered by the entry whose text holds `title`.
function S:choosing(title, fn)
  local select, seen = vim.ui.select, nil
  vim.ui.select = function(items, opts, on_choice)
    seen = {}
    local hit, n
    for i, it in ipairs(items) do
      local text = opts.format_item and opts.format_item(it) or tostring(it)
      seen[i] = text
      if not hit and text:find(title, 1, true) then hit, n = it, i end
    end
    on_choice(hit, n)
  end
  local ok, err = pcall(fn)
  if not ok then
    vim.ui.select = select
    error(err, 0)
  end
  self.restore_select = function() vim.ui.select = select end
  return function() return seen end
end

--- The code actions at a place: [{title, kind, action}]
function S:code_actions(line, col, only)
  self:at(line, col)
  local params = vim.lsp.util.make_range_params(0, self:encoding())
  local lsp = {}
  for _, d in ipairs(vim.diagnostic.get(self.buf, { lnum = line - 1 })) do
    local raw = vim.tbl_get(d, 'user_data', 'lsp')
    lsp[#lsp + 1] = (raw and raw.range) and raw or vim.tbl_extend('keep', {
      range = { start = { line = d.lnum, character = d.col }, ['end'] = { line = d.end_lnum, character = d.end_col } },
      message = d.message, severity = d.severity, source = d.source, code = d.code,
    }, raw or {})
  end
  params.context = { diagnostics = lsp, only = only, triggerKind = 1 }
  local r, e = self:request('textDocument/codeAction', params)
  if e then error(vim.inspect(e), 2) end
  return vim.tbl_map(function(a) return { title = a.title, kind = a.kind, action = a } end, r or {})
end

--- Runs one code action through the user's menu, chosen by its title: edits are applied and
--- commands executed by Neovim itself. Waits until the buffer changed or a command was answered.
function S:run_code_action(line, col, title, timeout)
  self:at(line, col)
  local tick = vim.api.nvim_buf_get_changedtick(self.buf)
  local chosen
  local seen = self:choosing(title, function() chosen = vim.lsp.buf.code_action() end)
  M.wait('the code action menu', function() return seen() or vim.api.nvim_buf_get_changedtick(self.buf) ~= tick end, timeout or self.timeout)
  local list = seen() or {}
  local found = false
  for _, t in ipairs(list) do found = found or t:find(title, 1, true) ~= nil end
  if #list > 0 and not found then
    self.restore_select()
    error(('no code action %q; there are: %s'):format(title, vim.inspect(list)), 2)
  end
  vim.wait(2000, function() return vim.api.nvim_buf_get_changedtick(self.buf) ~= tick end, 20)
  self.restore_select()
  return list, chosen
end

--- Inlay hints that the client holds for the buffer: [{line, col, text}]; nil before 0.10.
function S:inlay_hints(timeout)
  if not vim.lsp.inlay_hint then return nil end
  vim.lsp.inlay_hint.enable(true, { bufnr = self.buf })
  local get = function()
    local out = {}
    for _, h in ipairs(vim.lsp.inlay_hint.get({ bufnr = self.buf })) do
      local l = h.inlay_hint.label
      if type(l) == 'table' then l = table.concat(vim.tbl_map(function(p) return p.value end, l)) end
      out[#out + 1] = { line = h.inlay_hint.position.line + 1, col = h.inlay_hint.position.character + 1, text = l }
    end
    return #out > 0 and out
  end
  M.wait('inlay hints', get, timeout or self.timeout)
  return get()
end

--- Virtual text that is drawn in the buffer, by line: what a user sees of lenses, hints, diagnostics.
function S:virtual_text()
  local out = {}
  for _, m in ipairs(marks_of(self.buf)) do
    local chunks = vim.list_extend({}, m.details.virt_text or {})
    for _, l in ipairs(m.details.virt_lines or {}) do vim.list_extend(chunks, l) end
    local t = table.concat(vim.tbl_map(function(c) return c[1] end, chunks))
    if t:match('%S') then out[#out + 1] = { line = m.line, text = t, namespace = m.name } end
  end
  return out
end

--- Labels of the completion items at a place.
function S:completions(line, col)
  self:at(line, col)
  local r, e = self:request('textDocument/completion', self:position())
  if e then error(vim.inspect(e), 2) end
  return vim.tbl_map(function(i) return i.label end, r and (r.items or r) or {})
end

function S:command(command, arguments)
  return self:request('workspace/executeCommand', { command = command, arguments = arguments })
end

function S:wait_message(part, timeout)
  return M.wait('a message ' .. part, function()
    for _, m in ipairs(self.messages) do if m.message:find(part, 1, true) then return m end end
  end, timeout or self.timeout)
end

--- The screen as text, one string a line.
function S:screen()
  vim.cmd('redraw!')
  local out = {}
  for r = 1, vim.o.lines do
    local row = {}
    for c = 1, vim.o.columns do row[c] = vim.fn.screenstring(r, c) end
    out[r] = (table.concat(row):gsub('%s+$', ''))
  end
  return out
end

--- Ends the server in order (shutdown, exit); answers {code, signal}.
function S:stop(timeout)
  local c = self:client()
  if c then
    if vim.lsp.enable then vim.lsp.enable(self.name, false) end
    if has('0.11') then c:stop() else c.stop() end
  end
  return M.wait('the server to end', function() return self.exit end, timeout or 8000)
end

return M
