import type { Context } from './context.ts'
import { CliError, exitCodes, usageError } from './errors.ts'

type Question = { label: string; flag: string; secret?: boolean; byDefault?: string }

/** Asks a person; where there is none (or they gave up) it fails and names the flag that would have answered. */
export async function ask(
  { io, mayAsk, output }: Context,
  { label, flag, secret = false, byDefault }: Question,
) {
  if (!mayAsk) throw usageError(`${label} is missing, and there is no terminal to ask on.`, `Pass ${flag}.`)
  const suffix = byDefault === undefined ? '' : output.paintError.dim(` (${byDefault})`)
  for (;;) {
    const line = await io.askLine(`${output.paintError.bold(label)}${suffix}: `, { secret })
    if (line === null) throw new CliError(exitCodes.interrupted, 'CANCELED', 'Canceled; nothing was changed.')
    const answer = (secret ? line : line.trim()) || byDefault
    if (answer) return answer
  }
}

/** A password from standard input without the newline that `echo` puts behind it, or typed and not shown. */
export async function askPassword(
  context: Context,
  { fromInput, repeat }: { fromInput: boolean; repeat: boolean },
) {
  if (fromInput && !context.io.stdinIsTerminal) return await readSecret(context, 'password')
  const question = {
    // Whoever chooses one is told the rule before they have typed it twice.
    label: repeat ? `Password, ${passwordLengthMin} characters or more` : 'Password',
    flag: '--password-stdin and the password on standard input',
    secret: true,
  }
  const password = await askLong(context, question, repeat)
  if (repeat && (await ask(context, { ...question, label: 'The same again' })) !== password)
    throw usageError('The two passwords differ; nothing was changed.')
  return password
}

/** A new password has a length that the server insists on: who types less is asked again. */
async function askLong(context: Context, question: Question, isNew: boolean) {
  for (;;) {
    const password = await ask(context, question)
    if (!isNew || [...password].length >= passwordLengthMin) return password
    context.io.writeError(`That has fewer than ${passwordLengthMin} characters.\n`)
  }
}

const passwordLengthMin = 12

/** The whole of standard input as one secret. */
export async function readSecret({ io }: Context, what: string) {
  const secret = (await io.readInput()).replace(/\r?\n$/, '')
  if (secret === '') throw usageError(`Standard input holds no ${what}.`)
  return secret
}
