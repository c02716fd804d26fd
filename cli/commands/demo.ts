import type { CliCommand } from './command.ts'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createContext, type Context } from '../context.ts'
import { startRefusedError } from '../host/commands.ts'
import { requireConfig } from '../host/config.ts'
import { CliError, exitCodes } from '../terminal/errors.ts'
import { runUntilInterrupted } from '../terminal/interrupt.ts'
import type { Io } from '../terminal/io.ts'
import { version } from '../version.ts'

/** Runs a command line, as `otpd` does. @returns its exit code */
type RunCommandLine = (argv: string[], io: Io) => Promise<number>

/** Number that belongs to no person (+1 415 555 01xx). */
const phone = '+14155550132'

/** Registers `otpd demo`. @param runCommandLine runs the commands that the demo shows */
export function addDemoCommand(program: CliCommand, runCommandLine: RunCommandLine) {
  program
    .command('demo')
    .description('show a code sent and verified, on a server of its own that leaves nothing behind')
    .examples('otpd demo')
    .run(async (context) => {
      const folder = await makeFolder()
      process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
      process.once('SIGHUP', () => process.exit(exitCodes.hungUp))
      return await runUntilInterrupted(context.io, (signal) =>
        showDemo(context, { folder, signal, runCommandLine }),
      )
    })
}

type Demo = { folder: string; signal: AbortSignal; runCommandLine: RunCommandLine }

async function showDemo(context: Context, demo: Demo) {
  const { output } = context
  output.note('A server of its own on a free port, with its data in a temporary folder. Nothing is kept.\n')
  const server = await startDemoServer(demo.folder)
  try {
    const io = demoIo(context.io, demo.folder, server.url)
    const type = createTyping(context, io, demo)
    const password = Buffer.from(crypto.getRandomValues(new Uint8Array(12))).toString('base64url')
    const dataDir = join(demo.folder, 'data')
    const login = ['login', '--setup-token-file', join(dataDir, 'setup-token'), '--email', 'ada@example.com']
    await type([...login, '--password-stdin'], { input: password, shown: null })
    await type(['project', 'create', 'shop'])
    await type(['app', 'create', 'web', '--project', 'shop', '--env', 'live', '--env-file', '.env.otpd'])
    const sent = await type(['otp', 'send', phone, '--env-file', '.env.otpd'])
    const [requestId = ''] = /otp_[0-9a-z]{26}/.exec(sent) ?? []
    const inbox = await type(['inbox'])
    const [, code = ''] = /(?:^|[\s"])(\d{6})(?:[\s"]|$)/m.exec(inbox) ?? []
    await type(['otp', 'verify', requestId, code, '--env-file', '.env.otpd'])
    const timeline = await type(['otp', 'get', requestId])
    if (demo.signal.aborted) return
    if (output.json) return context.io.writeOut(timeline)
    await showConsole(context, io)
    output.note('\nThe server is stopped, and its data removed.')
    output.suggestNext('otpd serve', 'otpd docs quickstart')
  } finally {
    await server.stop()
  }
}

async function makeFolder(): Promise<string> {
  const { makeTemporaryDir } = await import('../../src/server/bundle.ts')
  try {
    return makeTemporaryDir('otpd-demo-')
  } catch (error) {
    throw startRefusedError(error) ?? error
  }
}

async function startDemoServer(folder: string) {
  const { createLog, loadConfig, processInput, startServer } = await import('../../src/server/bundle.ts')
  // Not the settings of a real server on this machine.
  const file = join(folder, 'otpd.toml')
  writeFileSync(file, '')
  const flags = { config: file, listen: '127.0.0.1:0', dataDir: join(folder, 'data') }
  const config = requireConfig(
    loadConfig(processInput(flags, { env: {}, workingDirectory: folder })),
    exitCodes.startRefused,
  )
  const log = createLog({
    format: 'text',
    level: 'error',
    write: () => Promise.resolve(),
    clock: { now: Date.now },
  })
  return await startServer(config, { log, version }).catch((error: unknown) => {
    throw startRefusedError(error) ?? error
  })
}

/** The process as the shown commands see it: none of the person's own settings and logins. */
function demoIo(io: Io, folder: string, serverUrl: string): Io {
  const env = Object.fromEntries(Object.entries(io.env).filter(([name]) => !/^(OTPD|XDG)_/.test(name)))
  return {
    ...io,
    env: { ...env, OTPD_SERVER: serverUrl },
    workingDirectory: folder,
    homeDirectory: folder,
    stdinIsTerminal: false,
  }
}

/** Creates the function that shows a command, runs it and returns what it printed. Does nothing once the demo is interrupted. */
function createTyping({ output, io: own }: Context, io: Io, { signal, runCommandLine }: Demo) {
  return async (
    args: string[],
    { input = '', shown = args.join(' ') }: { input?: string; shown?: string | null } = {},
  ) => {
    if (signal.aborted) return ''
    const isShown = shown !== null && !output.json
    if (isShown) own.writeOut(`${output.paint.bold(`$ otpd ${shown}`)}\n`)
    let printed = ''
    let errors = ''
    const exitCode = await runCommandLine(output.json ? [...args, '--json'] : args, {
      ...io,
      readInput: () => Promise.resolve(input),
      writeOut(text) {
        printed += Bun.stripANSI(text)
        if (isShown) own.writeOut(text)
      },
      // Hints at the next command, which the demo types itself.
      writeError: (text) => void (errors += text),
    })
    if (exitCode !== exitCodes.done)
      throw new CliError(exitCodes.bug, 'DEMO_FAILED', `otpd ${args.join(' ')} failed: ${errors.trim()}`)
    if (isShown) own.writeOut('\n')
    return printed
  }
}

/** Shows a picture of the console, which the demo cannot leave open. */
async function showConsole({ io: own, flags, output }: Context, io: Io) {
  const { drawConsole } = await import('../console/run-console.tsx')
  // Leaves out a server that the command line names: the picture is of the demo's own.
  const { server: _server, context: _context, ...ownFlags } = flags
  const picture = await drawConsole(createContext(io, ownFlags, output), /100%[^]*No failures/)
  if (picture !== null) own.writeOut(`${output.paint.bold('$ otpd console')}\n${picture}\n`)
}
