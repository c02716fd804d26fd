import { editDistance } from '../../src/shared/edit-distance.ts'

/** Edits after which a word is another one. */
const editsMax = 2

/**
 * Lists the words that are closest to a mistyped one: at most two letters missing, added, replaced or swapped. Words that begin
 * with what was typed are as close as those with one edit.
 */
export function similarWords(typed: string, words: readonly string[]): string[] {
  const isBeginning = (word: string) => typed.length > 1 && word.startsWith(typed)
  const distances = [...new Set(words)].map((word) => ({
    word,
    distance: isBeginning(word) ? 1 : editDistance(typed, word),
  }))
  // Half of a short word is not the word any more.
  const isSame = (word: string, distance: number) => distance < Math.min(word.length, typed.length) / 2
  const near = distances.filter(
    ({ word, distance }) => isBeginning(word) || (distance <= editsMax && isSame(word, distance)),
  )
  const least = Math.min(...near.map(({ distance }) => distance))
  return near.filter(({ distance }) => distance === least).map(({ word }) => word)
}
