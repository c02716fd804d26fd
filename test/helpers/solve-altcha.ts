import { createHash } from 'node:crypto'

/** Solves a proof of work as the ALTCHA widget does. @returns the token */
export function solveAltcha(data: Readonly<Record<string, unknown>>): string {
  const { algorithm, challenge, maxnumber, salt, signature } = data
  for (let number = 0; number <= Number(maxnumber); number++) {
    const hash = createHash('sha256')
      .update(`${String(salt)}${number}`)
      .digest('hex')
    if (hash === challenge)
      return btoa(JSON.stringify({ algorithm, challenge, number, salt, signature, took: 1 }))
  }
  throw new Error('There is no solution.')
}
