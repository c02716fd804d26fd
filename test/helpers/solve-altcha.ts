import { hash } from 'node:crypto'

/** Solves a proof of work as the ALTCHA widget does. @returns the token */
export function solveAltcha(data: Readonly<Record<string, unknown>>): string {
  const { algorithm, challenge, maxnumber, salt, signature } = data
  for (let number = 0; number <= Number(maxnumber); number++) {
    if (hash('sha256', `${String(salt)}${number}`, 'hex') === challenge)
      return btoa(JSON.stringify({ algorithm, challenge, number, salt, signature, took: 1 }))
  }
  throw new Error('There is no solution.')
}
