import { CliError, exitCodes } from '../terminal/errors.ts'
import { printable } from '../terminal/text.ts'

export type DuplicateOption = { allowDuplicate?: true }

export const duplicateFlag = '--allow-duplicate'

/**
 * Refuses a name that is taken: two resources of one name can no longer be told apart by it.
 *
 * @throws CliError NAME_TAKEN
 */
export function requireNewName(
  noun: 'project' | 'application',
  name: string,
  existing: { id: string; name: string }[],
) {
  const taken = existing.find((resource) => resource.name === name)
  if (taken === undefined) return
  throw new CliError(
    exitCodes.refused,
    'NAME_TAKEN',
    `There is already ${noun === 'project' ? 'a' : 'an'} ${noun} ${printable(name)}: ${taken.id}.`,
    {
      hints: [`Choose another name, or create a second one of this name with ${duplicateFlag}.`],
    },
  )
}
