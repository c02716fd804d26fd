import { editDistance, nearMax } from './edit-distance.ts'

/** Suggests the nearest candidate for an unknown name ("Did you mean …?"); undefined if none is near. */
export function suggest(name: string, candidates: readonly string[]): string | undefined {
  const distance = (candidate: string) =>
    Math.min(distanceOf(name, candidate), distanceOf(lastKey(name), lastKey(candidate)))
  const nearest = candidates
    .filter((candidate) => isNear(name, candidate))
    .toSorted((a, b) => distance(a) - distance(b) || distanceOf(name, a) - distanceOf(name, b))[0]
  return nearest && `Did you mean ${nearest}?`
}

/**
 * Matches typing mistakes, other spellings of the same words, a key in a wrong table, also misspelt or with the name of its
 * table before it, and prefixes, either way.
 */
export function isNear(name: string, candidate: string): boolean {
  const [actual, expected] = [normalize(name), normalize(candidate)]
  const [key, expectedKey] = [lastKey(name), lastKey(candidate)]
  return (
    distanceOf(actual, expected) <= Math.min(nearMax, Math.floor(expected.length / 4)) ||
    expected.startsWith(actual) ||
    (expected.length > 3 && actual.startsWith(expected)) ||
    distanceOf(key, expectedKey) <= Math.min(2, Math.floor(expectedKey.length / 5)) ||
    key === expected.replaceAll('.', '') ||
    expected.startsWith(`${key}.`)
  )
}

const distanceOf = (a: string, b: string) => editDistance(normalize(a), normalize(b))
/** Also makes `countries` and `country` equal. */
const normalize = (name: string) => name.toLowerCase().replace(/[_-]/g, '').replace(/ies$/, 'y')
const lastKey = (name: string) => normalize(name.split('.').at(-1) ?? '')
