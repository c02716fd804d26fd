import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { Context, RunCommand } from '../context.ts'
import { usageError } from '../terminal/errors.ts'
import { terminalJson } from '../terminal/text.ts'
import { examples } from '../help.ts'

const methods = ['GET', 'POST', 'PATCH', 'PUT', 'DELETE']

/** Registers the api command, which makes any call of the HTTP API. */
export function addApiCommand(program: Command, runCommand: RunCommand) {
  program
    .command('api')
    .argument('<method>', 'GET, POST, PATCH or DELETE')
    .argument('<path>', 'path from the API documentation, like /v1/projects')
    .description('call the HTTP API with your login, and print the response body')
    .option('-d, --data <json>', 'request body: JSON, @FILE, or - for standard input')
    .addHelpText(
      'after',
      examples(
        'otpd api GET /v1/developer/me',
        `otpd api POST /v1/projects --data '{"name":"storefront"}'`,
        `echo '{"name":"shop"}' | otpd api POST /v1/projects --data -`,
      ),
    )
    .action((method: string, path: string, options: { data?: string }, command: Command) =>
      runCommand(command, async (context) => {
        const httpMethod = method.toUpperCase()
        if (!methods.includes(httpMethod))
          throw usageError(`Unknown method ${httpMethod}. Use one of ${methods.join(', ')}.`)
        // Anything but a path could name another host, and the token would be sent there.
        if (!/^\/(?!\/)/.test(path))
          throw usageError('The path must begin with a single slash, like /v1/projects.')
        const body = options.data === undefined ? undefined : await readData(context, options.data)
        const responseBody = await context.connect().api.raw(httpMethod, path, body)
        const text = () => (context.io.stdoutIsTerminal ? terminalJson(responseBody) : responseBody)
        context.output.printResult(responseBody, text)
      }),
    )
}

async function readData({ io }: Context, data: string) {
  if (data === '-') return await io.readInput()
  if (!data.startsWith('@')) return data
  const path = data.slice(1)
  try {
    return readFileSync(resolve(io.workingDirectory, path), 'utf8')
  } catch {
    throw usageError(`Cannot read the file ${path} given with --data.`)
  }
}
