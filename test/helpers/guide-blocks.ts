import { CommanderError, type Command } from 'commander'
import { expect } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { commandPath, findCommand } from '../../cli/help.ts'
import { createProgram } from '../../cli/program.ts'
import { processIo } from '../../cli/terminal/terminal.ts'
import { binaryPath, runToEnd, startServer } from './binary.ts'
import { testEnvironment } from './run-command.ts'

const root = join(import.meta.dir, '../..')

/** Reads a document. @param path from the project's folder */
export const readDocument = (path: string) => readFileSync(join(root, path), 'utf8')

/** Returns the code blocks of a language in a document, or in the section below one of its headings. */
export function codeBlocks(markdown: string, language: string, heading = ''): string[] {
  const block = /^```(\w*)\n([^]*?)^```$/gm
  return [...sectionOf(markdown, heading).matchAll(block)].flatMap(([, name, text = '']) =>
    name === language ? [text] : [],
  )
}

function sectionOf(markdown: string, heading: string): string {
  if (heading === '') return markdown
  const start = markdown.indexOf(`\n${heading}\n`)
  if (start === -1) throw new Error(`There is no heading ${heading}.`)
  const below = markdown.slice(start + heading.length + 2)
  const end = below.search(/^#{1,3} /m)
  return end === -1 ? below : below.slice(0, end)
}

/** Splits a shell block into commands, without comments. */
export const commandLines = (block: string): string[] =>
  block
    .replaceAll('\\\n', ' ')
    .split('\n')
    .map((line) => line.replace(/\s+#.*$/, '').trim())
    .filter((line) => line !== '')

export type Reader = Awaited<ReturnType<typeof createReader>>

/** Starts a server, and a shell in which a reader of the documents types their commands. */
export async function createReader() {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-reader-'))
  mkdirSync(join(folder, 'bin'))
  symlinkSync(binaryPath, join(folder, 'bin', 'otpd'))
  const server = await startServer()
  let requestId = ''
  let code = ''

  return {
    folder,
    server,
    /** Runs a line. @returns what it printed @throws if it fails */
    async type(
      line: string,
      { input = '', env = {} }: { input?: string; env?: Record<string, string> } = {},
    ) {
      const command = line.replaceAll('http://127.0.0.1:8080', server.url)
      const { stdout, stderr, exitCode } = await runToEnd(['sh', '-c', command], {
        cwd: folder,
        env: {
          ...testEnvironment(folder),
          PATH: `${join(folder, 'bin')}:${process.env.PATH ?? ''}`,
          OTPD_SERVER: server.url,
          OTPD_DATA_DIR: server.dataDir,
          ...env,
        },
        input,
      })
      expect({ line, exitCode, stderr }).toMatchObject({ line, exitCode: 0 })
      return stdout
    },
    /** Follows commands to a first verified code: fills in the token, the request and the code as they are printed. */
    async verifyFirstCode(lines: string[]) {
      for (const line of lines) {
        if (line.startsWith('alias ')) continue
        const isLogin = line.includes('login')
        const filled = line
          .replace(/~\/\.local\/share\/otpd|(?<= )data(?=\/setup-token)/, () => server.dataDir)
          .replace('otp_…', requestId)
          .replace('123456', code)
        const typed = isLogin ? `${filled} --email ada@example.com --password-stdin` : filled
        const printed = await this.type(typed, isLogin ? { input: 'correct horse battery' } : {})
        requestId = /otp_[0-9a-z]{26}/.exec(printed)?.[0] ?? requestId
        code = /\s([0-9]{6})\s/.exec(printed)?.[1] ?? code
        if (line.includes('verify')) expect(printed).toContain('is verified')
      }
    },
    async stop() {
      await server.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const listFlags = (command: Command | null): (string | undefined)[] =>
  command === null
    ? ['--help']
    : [...command.options.flatMap(({ long, short }) => [long, short]), ...listFlags(command.parent)]

/** Expects that the commands and flags in a document's text exist. @returns how many it names */
export function expectCommandsExist(markdown: string): number {
  const spans = [...markdown.matchAll(/`(otpd(?: [^`]*)?)`/g)].map(([, line]) => line ?? '')
  for (const line of new Set(spans)) {
    const words = line.split(' ').slice(1)
    // Values of flags and placeholders are not commands.
    const named = words.filter((word, i) => /^[a-z][a-z-]*$/.test(word) && !words[i - 1]?.startsWith('--'))
    const program = createProgram(processIo(), async () => {}, named[0])
    const command = findCommand(program, named)
    const isGroup = command.commands.length > 0 && command.registeredArguments.length === 0
    if (isGroup && !line.endsWith('…')) {
      const rest = named.slice(commandPath(command).split(' ').length - 1)
      expect([line, rest]).toEqual([line, []])
    }
    const knownFlags = listFlags(command)
    for (const word of words)
      if (word.startsWith('-')) expect([line, knownFlags]).toEqual([line, expect.arrayContaining([word])])
  }
  return spans.length
}

/**
 * Parses every command of otpd in the shell blocks of a document, as typed: a missing or unknown argument, option or value
 * of a closed list is a fault. Nothing is run.
 *
 * @returns the faults, and how many commands there are
 */
export async function parseCommands(markdown: string): Promise<{ faults: string[]; count: number }> {
  const blocks = ['sh', 'console'].flatMap((language) => codeBlocks(markdown, language))
  const lines = blocks.flatMap(commandLines).flatMap(splitCommands)
  const faults: string[] = []
  const io = { ...processIo(), writeOut: () => {}, writeError: () => {} }
  for (const words of lines) {
    const program = createProgram(io, async () => {}, words[0])
    await program.parseAsync(words, { from: 'user' }).catch((error: unknown) => {
      if (!(error instanceof CommanderError) || error.exitCode !== 0)
        faults.push(`otpd ${words.join(' ')}: ${String(error)}`)
    })
  }
  return { faults, count: lines.length }
}

/** Splits a shell line into the words after each `otpd`, without what the shell takes. */
function splitCommands(line: string): string[][] {
  const substitutions = [...line.matchAll(/\$\(([^()]*)\)/g)].flatMap(([, inner = '']) =>
    splitCommands(inner),
  )
  const tokens = line.match(/(?:'[^']*'|"[^"]*"|\$\([^)]*\)|[^\s;|&()<>"'])+|[;|&()<>]+/g) ?? []
  const commands: string[][] = []
  let current: string[] | null = null
  let isFile = false
  for (const token of tokens) {
    if (/^[;|&()]+$/.test(token)) current = null
    else if (/^[<>]/.test(token)) isFile = true
    else if (isFile) isFile = false
    else if (current !== null) current.push(token.replaceAll(/^['"]|['"]$/g, ''))
    else if (/(?:^|\/)otpd$/.test(token)) commands.push((current = []))
  }
  return [...commands.filter(([first]) => first !== undefined), ...substitutions]
}
