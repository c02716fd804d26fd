import { CliError, exitCodes, isOutOfScope } from '../terminal/errors.ts'
import { printable } from '../terminal/text.ts'

export type DuplicateOption = { allowDuplicate?: true }

export const duplicateFlag = '--allow-duplicate'

/**
 * Refuses a name that is taken: two resources of one name can no longer be told apart by it. A token that may not
 * list the names may not create either: the refusal of the creation then names the scope that it needs.
 *
 * @param list loads what exists
 * @throws CliError NAME_TAKEN
 */
export async function requireNewName(
  noun: 'project' | 'application',
  name: string,
  list: () => Promise<{ id: string; name: string }[]>,
): Promise<void> {
  const existing = await list().catch((error: unknown) => {
    if (isOutOfScope(error)) return []
    throw error
  })
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
