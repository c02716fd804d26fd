import type { Context } from '../context.ts'
import { CliError, exitCodes, usageError } from './errors.ts'

type Question = {
  label: string
  flag: string
  secret?: boolean
  defaultAnswer?: string
  /** What is wrong with an answer, which is then asked for again. */
  validate?: (answer: string) => string | null
}

/** Asks a person; where there is none (or they gave up) it fails and names the flag that would have answered. */
export async function ask(
  { io, mayAsk, output }: Context,
  { label, flag, secret = false, defaultAnswer, validate }: Question,
) {
  if (!mayAsk) throw usageError(`${label} is missing, and there is no terminal to ask on.`, `Pass ${flag}.`)
  const suffix = defaultAnswer === undefined ? '' : output.paintError.dim(` (${defaultAnswer})`)
  for (;;) {
    const line = await io.askLine(`${output.paintError.bold(label)}${suffix}: `, { secret })
    if (line === null) throw new CliError(exitCodes.interrupted, 'CANCELED', 'Canceled; nothing was changed.')
    const answer = (secret ? line : line.trim()) || defaultAnswer
    if (!answer) continue
    const problem = validate?.(answer) ?? null
    if (problem === null) return answer
    io.writeError(`${problem}\n`)
  }
}

export const emailQuestion: Question = {
  label: 'Email',
  flag: '--email',
  // Told before a name and a password are typed for nothing.
  validate: (email) => (email.includes('@') ? null : 'That is no e-mail address.'),
}

/** A password from standard input without the newline that `echo` puts behind it, or typed and not shown. */
export async function askPassword(
  context: Context,
  { fromInput, repeat }: { fromInput: boolean; repeat: boolean },
) {
  if (fromInput && !context.io.stdinIsTerminal) return await readSecret(context, 'password')
  const question = { label: 'Password', flag: '--password-stdin and the password on standard input' }
  return repeat ? await askNewPassword(context, question) : await ask(context, { ...question, secret: true })
}

/** A password that somebody chooses: typed twice, and as long as the server insists on. */
export async function askNewPassword(context: Context, { label, flag }: Question) {
  const password = await ask(context, {
    // Whoever chooses one is told the rule before they have typed it twice.
    label: `${label}, ${passwordLengthMin} characters or more`,
    flag,
    secret: true,
    validate: (input) =>
      [...input].length >= passwordLengthMin ? null : `That has fewer than ${passwordLengthMin} characters.`,
  })
  if ((await ask(context, { label: 'The same again', flag, secret: true })) !== password)
    throw usageError('The two passwords differ; nothing was changed.')
  return password
}

const passwordLengthMin = 12

/** The whole of standard input as one secret. */
export async function readSecret({ io }: Context, label: string) {
  const secret = (await io.readInput()).replace(/\r?\n$/, '')
  if (secret === '') throw usageError(`Standard input holds no ${label}.`)
  return secret
}
