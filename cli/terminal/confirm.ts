import type { Context } from '../context.ts'
import { CliError, exitCodes, usageError } from './errors.ts'
import { printable } from './text.ts'

export type Confirmation = {
  /** The id of what it is about, looked for only once it is clear that something may happen. */
  find: () => Promise<string>
  /** What is about to be done, as a question, and the name that has to be typed. The id does as well. */
  describe: (id: string) => Promise<{ question: string; name: string }>
}

/**
 * Lets what cannot be undone go on only with --yes, or once its name was typed on a terminal. Without either it is
 * a usage error, before any server is asked.
 *
 * @returns the id of what is to be done away with
 */
export async function confirm({ io, flags, mayAsk, output }: Context, { find, describe }: Confirmation) {
  if (flags.yes === true) return await find()
  if (!mayAsk)
    throw usageError(
      'This cannot be undone and wants a confirmation, and there is no terminal to ask on.',
      'Pass --yes.',
    )
  const id = await find()
  const { question, name } = await describe(id)
  const displayName = printable(name)
  io.writeError(`${output.paintError.yellow('▲')} ${question}\n`)
  const input = await io.askLine(`Type ${output.paintError.bold(displayName)} to confirm: `, {
    secret: false,
  })
  if (input === null) throw new CliError(exitCodes.interrupted, 'CANCELED', 'Canceled; nothing was changed.')
  if (input.trim() !== name.trim() && input.trim() !== id)
    throw usageError(`That is not ${displayName}; nothing was changed.`)
  return id
}
