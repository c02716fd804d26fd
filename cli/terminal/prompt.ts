import { CliError, exitCodes, usageError } from './errors.ts'
import type { Io } from './io.ts'
import type { Output } from './output.ts'
import { wrapText } from './text.ts'

/** The part of a command's context that a prompt uses. */
export type PromptContext = {
  io: Io
  output: Output
  /** Whether the command may prompt. */
  mayAsk: boolean
}

type Question = {
  label: string
  /** Flag that gives the answer without a prompt. */
  flag: string
  secret?: boolean
  /** Shown after the label, like a rule for the answer. */
  hint?: string
  defaultAnswer?: string
  /** Returns what is wrong with an answer, to prompt again; null if it is accepted. */
  validate?: (answer: string) => string | null
}

/**
 * Prompts for a value.
 *
 * @throws usage error naming the flag when prompting is not possible; CANCELED when the user gives up
 */
export async function ask(
  { io, mayAsk, output }: PromptContext,
  { label, flag, secret = false, defaultAnswer, hint = defaultAnswer, validate }: Question,
) {
  if (!mayAsk)
    throw usageError(
      `No ${label.toLowerCase()} given, and there is no terminal to prompt on.`,
      `Pass ${flag}.`,
    )
  const { bold, dim } = output.paintError
  const width = io.columns?.() ?? Infinity
  // A long hint goes above the prompt, because a terminal would break it within a word.
  const isLong = hint !== undefined && Bun.stringWidth(`${label} (${hint}): `) > width / 2
  const suffix = hint === undefined || isLong ? '' : dim(` (${hint})`)
  if (isLong)
    io.writeError(
      `${wrapText(hint, width)
        .map((row) => dim(row))
        .join('\n')}\n`,
    )
  for (;;) {
    const line = await io.askLine(`${bold(label)}${suffix}: `, { secret })
    if (line === null) throw new CliError(exitCodes.interrupted, 'CANCELED', 'Canceled; nothing was changed.')
    const answer = (secret ? line : line.trim()) || defaultAnswer
    if (!answer) continue
    const problem = validate?.(answer) ?? null
    if (problem === null) return answer
    io.writeError(`${problem}\n`)
  }
}

/**
 * Prompts for a value until a call accepts it.
 *
 * @param prompt asks once
 * @param findFault returns what is wrong with the value; undefined for another error, which is thrown
 */
export async function askUntilAccepted<T>(
  { io }: PromptContext,
  prompt: () => Promise<string>,
  call: (answer: string) => Promise<T>,
  findFault: (error: unknown) => string | undefined,
): Promise<T> {
  for (;;) {
    const answer = await prompt()
    try {
      return await call(answer)
    } catch (error) {
      const fault = findFault(error)
      if (fault === undefined) throw error
      io.writeError(`${fault}\n`)
    }
  }
}

export const emailQuestion: Question = {
  label: 'Email',
  flag: '--email',
  // Checked here, before a name and a password are typed in vain.
  validate: (email) => (email.includes('@') ? null : 'That is not an e-mail address.'),
}

/** Asks for the second factor. The terminal shows it: it is worthless within a minute, and easy to mistype. */
export const totpQuestion: Question = {
  label: 'Code',
  flag: '--totp CODE',
  hint: 'the code of your authenticator app, or a recovery code',
}

/** Reads a password from standard input, without the newline that `echo` adds, or prompts for it without echo. */
export async function askPassword(
  context: PromptContext,
  { fromInput, repeat }: { fromInput: boolean; repeat: boolean },
) {
  if (fromInput && !context.io.stdinIsTerminal) return await readSecret(context.io, 'password')
  const question = { label: 'Password', flag: '--password-stdin and the password on standard input' }
  return repeat ? await askNewPassword(context, question) : await ask(context, { ...question, secret: true })
}

/** Prompts for a new password until it is typed twice alike, and enforces the server's minimum length. */
export async function askNewPassword(context: PromptContext, { label, flag }: Question) {
  const confirmation = { label: `Confirm ${label.toLowerCase()}`, flag, secret: true }
  for (;;) {
    const password = await ask(context, {
      label,
      hint: `${passwordLengthMin} characters or more`,
      flag,
      secret: true,
      validate: (input) =>
        [...input].length >= passwordLengthMin
          ? null
          : `Too short: use ${passwordLengthMin} characters or more.`,
    })
    if ((await ask(context, confirmation)) === password) return password
    context.io.writeError('The passwords do not match. Type both again.\n')
  }
}

const passwordLengthMin = 12

/** Reads all of standard input as one secret. */
export async function readSecret(io: Io, label: string) {
  const secret = (await io.readInput()).replace(/\r?\n$/, '')
  if (secret === '') throw usageError(`There is no ${label} on standard input.`)
  return secret
}
