import { CliError, exitCodes, usageError } from './errors.ts'
import type { PromptContext } from './prompt.ts'
import { printable } from './text.ts'

type Confirmation = {
  /** Finds the id of the resource; called only with --yes or when prompting is possible. */
  find: () => Promise<string>
  /** Returns the question, and the name to type. The id is accepted too. */
  describe: (id: string) => Promise<{ question: string; name: string }>
  /** Another command undoes the action. */
  isReversible?: boolean
}

/**
 * Confirms an action that others may suffer from: by --yes, or by the name of the resource typed on a terminal.
 *
 * @returns the id of the resource
 * @throws usage error before any call to the server when neither is possible, or when the typed name is wrong;
 *   CANCELED when the user gives up
 */
export async function confirm(
  { io, flags, mayAsk, output }: PromptContext & { flags: { yes?: boolean } },
  { find, describe, isReversible = false }: Confirmation,
) {
  if (flags.yes === true) return await find()
  if (!mayAsk)
    throw usageError(
      isReversible
        ? 'There is no terminal to confirm this on.'
        : 'This cannot be undone, and there is no terminal to confirm it on.',
      'Confirm it with --yes.',
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
