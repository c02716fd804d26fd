import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { CliCommand } from './command.ts'
import type { RawResponse } from '../client/api.ts'
import type { Context } from '../context.ts'
import { usageError } from '../terminal/errors.ts'
import { collect } from '../terminal/pairs.ts'
import { terminalJson } from '../terminal/text.ts'
import { isRecord, parseJson } from '../../src/shared/json.ts'

const methods = ['GET', 'POST', 'PATCH', 'PUT', 'DELETE']

type Options = { data?: string; field?: string[]; include?: true; method?: string; paginate?: true }

/** Registers the api command, which makes any call of the HTTP API. */
export function addApiCommand(program: CliCommand) {
  program
    .command('api')
    .usage('[method] <path> [options]')
    .argument(
      '<method|path>',
      `${methods.join(', ')} (default GET; POST with --data or --field), or the path`,
    )
    .argument('[path]', 'path from the API documentation, like /v1/projects')
    .description('call the HTTP API with your login, and print the response body')
    .option('-X, --method <method>', `${methods.join(', ')}, as the first argument`)
    .option('-d, --data <json>', 'request body: JSON, @FILE, or - for standard input')
    .option(
      '-f, --field <key=value>',
      'text in the request body, or query parameter of a GET; may be repeated',
      collect,
    )
    .option('-i, --include', 'print the status and the headers of the response, too')
    .option('--paginate', 'read all pages of a list, and print them as one')
    .examples(
      'otpd api v1/developer/me',
      'otpd api v1/otp -f status=verified --paginate',
      'otpd api POST /v1/projects -f name=storefront',
      `echo '{"name":"shop"}' | otpd api POST /v1/projects --data -`,
    )
    .run(async (context, methodOrPath: string, path: string | undefined, options: Options) => {
      const call = await readCall(context, methodOrPath, path, options)
      const { raw } = context.connect().api
      const response = options.paginate === true ? await readAllPages(raw, call) : await raw(call)
      const head = options.include === true ? headText(response) : ''
      const print = (body: string) => `${head}${context.io.stdoutIsTerminal ? terminalJson(body) : body}`
      context.output.printResult(response.body, () => print(response.body))
    })
}

type RawCall = { method: string; path: string; body: string | undefined }

/** @throws usage error */
async function readCall(
  context: Context,
  methodOrPath: string,
  secondArgument: string | undefined,
  { data, field: fields = [], method: methodFlag, paginate }: Options,
): Promise<RawCall> {
  const [methodArgument, pathText] =
    secondArgument === undefined ? [undefined, methodOrPath] : [methodOrPath, secondArgument]
  const chosen = methodFlag ?? methodArgument
  const hasBody = data !== undefined || fields.length > 0
  const method = (chosen ?? (hasBody && paginate !== true ? 'POST' : 'GET')).toUpperCase()
  if (!methods.includes(method))
    throw usageError(`Unknown method ${method}. Use one of ${methods.join(', ')}.`)
  if (data !== undefined && method === 'GET')
    throw usageError(
      'A GET has no body, so --data is not sent.',
      'For query parameters, use: --field key=value',
    )
  if (data !== undefined && fields.length > 0) throw usageError('--data and --field cannot be combined.')
  if (paginate === true && method !== 'GET') throw usageError('--paginate needs a GET.', 'Add: --method GET')
  const pairs = fields.map(readPair)
  if (chosen === undefined && method === 'POST' && pairs.length > 0)
    context.output.note('POST, because of --field. For query parameters of a GET, add: --method GET')
  const path = readPath(pathText)
  if (method === 'GET' && pairs.length > 0) {
    const query = new URLSearchParams(pairs).toString()
    return { method, path: `${path}${path.includes('?') ? '&' : '?'}${query}`, body: undefined }
  }
  if (pairs.length > 0) return { method, path, body: JSON.stringify(Object.fromEntries(pairs)) }
  return { method, path, body: data === undefined ? undefined : await readData(context, data) }
}

/** Anything but a path could name another host, and the token would be sent there. @throws usage error */
function readPath(text: string) {
  if (!/^\/?[^/\\:]/.test(text) || /^[a-z]+:/i.test(text))
    throw usageError('The path must be one like /v1/projects, without a host.')
  return text.startsWith('/') ? text : `/${text}`
}

/** @throws usage error */
function readPair(text: string): [string, string] {
  const at = text.indexOf('=')
  if (at < 1) throw usageError('--field must be a pair like name=storefront.')
  return [text.slice(0, at), text.slice(at + 1)]
}

/** Reads a list to its end. The body is that of the API with the items of all pages. */
async function readAllPages(
  raw: (call: RawCall) => Promise<RawResponse>,
  call: RawCall,
): Promise<RawResponse> {
  const items: unknown[] = []
  let cursor: string | null = null
  for (;;) {
    const separator = call.path.includes('?') ? '&' : '?'
    const path = cursor === null ? call.path : `${call.path}${separator}cursor=${encodeURIComponent(cursor)}`
    const response = await raw({ ...call, path })
    const page = parseJson(response.body)
    if (!isRecord(page) || !Array.isArray(page.data)) return response
    items.push(...page.data)
    cursor =
      isRecord(page.pagination) && typeof page.pagination.nextCursor === 'string'
        ? page.pagination.nextCursor
        : null
    if (cursor !== null) continue
    const pagination = { limit: items.length, nextCursor: null }
    return { ...response, body: JSON.stringify({ data: items, pagination }) }
  }
}

const headText = ({ status, headers }: RawResponse) =>
  [`HTTP ${status}`, ...[...headers].map(([name, value]) => `${name}: ${value}`), '', ''].join('\n')

async function readData({ io }: Context, data: string) {
  if (data === '-') return await io.readInput()
  if (!data.startsWith('@')) return data
  const path = data.slice(1)
  try {
    return readFileSync(resolve(io.workingDirectory, path), 'utf8')
  } catch {
    throw usageError(`The file of --data cannot be read: ${path}`, 'Correct the path or its permissions.')
  }
}
