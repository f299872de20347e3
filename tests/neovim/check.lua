-- Talks with the language server as an editor does: with Neovim's own client, without a screen.
--
-- usage: nvim --headless -u NONE -i NONE -l/-S tests/neovim/check.lua   (FLOWSTONE is the built program; the current
-- folder is a project)

local program = assert(os.getenv("FLOWSTONE"), "FLOWSTONE is not set")
local wait_ms = 30000

local text = table.concat({
  "{:slug :notes",
  " :concurrency {:type :singleton :on-new-version :coexist}",
  " :flow",
  " '(let [{:keys [path]} (flow/input)",
  "       stored (flow/step :kv :recall {:operation :gett :key path})]",
  "    (assoc stored :path path))}",
}, "\n")

local function fail(message)
  io.stderr:write(message .. "\n")
  vim.cmd("cquit 1")
end

local function check()
  vim.fn.writefile(vim.split(text, "\n"), "flows/notes.edn")
  vim.cmd("edit flows/notes.edn")
  local buffer = vim.api.nvim_get_current_buf()
  local client = assert(vim.lsp.start_client({ cmd = { program, "lsp" }, root_dir = vim.fn.getcwd() }))
  vim.lsp.buf_attach_client(buffer, client)

  local function found()
    return vim.diagnostic.get(buffer)
  end
  assert(vim.wait(wait_ms, function() return #found() == 1 end, 50), "no diagnostics: " .. vim.inspect(found()))
  assert(found()[1].message:find("gett"), vim.inspect(found()))

  local function ask(method, line, column)
    local params = {
      textDocument = vim.lsp.util.make_text_document_params(buffer),
      position = { line = line, character = column },
      options = { tabSize = 2, insertSpaces = true },
    }
    local answers = assert(vim.lsp.buf_request_sync(buffer, method, params, wait_ms), method .. ": no answer")
    local answer = answers[client]
    assert(answer and not answer.error, method .. ": " .. vim.inspect(answer))
    return answer.result
  end

  -- A change in the editor is sent as an edit; the finding goes away.
  local line = vim.api.nvim_buf_get_lines(buffer, 4, 5, true)[1]
  vim.api.nvim_buf_set_lines(buffer, 4, 5, true, { (line:gsub(":gett", ":get")) })
  assert(vim.wait(wait_ms, function() return #found() == 0 end, 50), vim.inspect(found()))

  local hover = ask("textDocument/hover", 5, 6)
  assert(hover.contents.value:find("clojure.core/assoc", 1, true), vim.inspect(hover))
  local column = assert(line:find(":gett", 1, true))
  local items = ask("textDocument/completion", 4, column)
  local labels = {}
  for _, item in ipairs(items) do
    labels[item.label] = true
  end
  assert(labels[":get"] and labels[":set"] and labels[":delete"], vim.inspect(labels))
  local place = ask("textDocument/definition", 5, 12)
  assert(place.range.start.line == 4, vim.inspect(place))
  local symbols = ask("textDocument/documentSymbol", 0, 0)
  assert(symbols[1].children[1].name == ":recall", vim.inspect(symbols))

  -- The editor applies the edits of the formatter.
  vim.lsp.util.apply_text_edits(ask("textDocument/formatting", 0, 0), buffer, "utf-16")
  local laid_out = vim.api.nvim_buf_get_lines(buffer, 4, 5, true)[1]
  assert(laid_out:find("^        stored"), laid_out)
  local edit = ask("textDocument/prepareRename", 4, 9)
  assert(edit.start.line == 4, vim.inspect(edit))

  vim.lsp.stop_client(client)
  assert(vim.wait(wait_ms, function() return vim.lsp.client_is_stopped(client) end, 50), "the server does not end")
end

local ok, message = pcall(check)
if not ok then
  fail("Neovim: " .. tostring(message))
else
  print("Neovim: diagnostics, completion, hover, definition, symbols, formatting\n")
  vim.cmd("qall!")
end
