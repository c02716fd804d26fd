import { startServer } from '../helpers/binary.ts'
import { startForgingProvider } from '../helpers/oidc.ts'
import { makeForgeries } from './jwt-corpus.ts'
import { seconds, seededRandom, type Part } from './part.ts'

const characters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=~+/'
const path = '/v1/developer/me'

export const jwt: Part = {
  name: 'jwt',
  title: 'forged and damaged ID tokens against the compiled binary',
  async run({ runs, seed }, print) {
    const started = performance.now()
    const forger = await startForgingProvider()
    const server = await startServer({
      env: { OTPD_OIDC_ISSUER: forger.issuer, OTPD_OIDC_AUDIENCE: forger.audience },
    })
    const random = seededRandom(seed)
    const findings: string[] = []
    const statusOf = async (token: string) => {
      const response = await fetch(server.url + path, { headers: { authorization: `Bearer ${token}` } })
      await response.text()
      return response.status
    }
    try {
      const good = await forger.sign(Date.now())
      const forgeries = await makeForgeries(forger, Date.now())
      for (const { name, token } of forgeries) {
        const status = await statusOf(token)
        if (status !== 401) findings.push(`${name}: ${status} for ${token}`)
      }
      for (let done = 0; done < runs; done += 50) {
        const mutants = Array.from({ length: Math.min(50, runs - done) }, () => damage(good, random))
        const statuses = await Promise.all(mutants.map(statusOf))
        for (const [index, mutant] of mutants.entries()) {
          const status = statuses[index]
          if (status !== 401 && !(status === 200 && isSame(mutant, good)))
            findings.push(`${status} for ${mutant}`)
        }
      }
      if ((await statusOf(good)) !== 200)
        findings.push('The good token was refused, so that nothing is shown.')
      print(`${forgeries.length} forged and ${runs} damaged tokens, ${seconds(started)}`)
      return findings
    } finally {
      await server.stop()
      await forger.stop()
    }
  },
}

/** One to three characters are replaced, added, removed or swapped. */
function damage(token: string, random: () => number): string {
  let text = token
  for (let times = 1 + Math.floor(random() * 3); times > 0; times--) {
    const at = Math.floor(random() * text.length)
    const character = characters[Math.floor(random() * characters.length)] ?? ''
    const [before, after] = [text.slice(0, at), text.slice(at + 1)]
    const kind = Math.floor(random() * 4)
    if (kind === 0) text = before + character + after
    else if (kind === 1) text = before + character + text.slice(at)
    else if (kind === 2) text = before + after
    else text = before + (text[at + 1] ?? '') + (text[at] ?? '') + text.slice(at + 2)
  }
  return text
}

/** The last character of a signature has bits that stand for nothing (RFC 4648 §3.5). */
function isSame(mutant: string, token: string): boolean {
  const split = (text: string): [string, string] => {
    const dot = text.lastIndexOf('.')
    return [text.slice(0, dot), Buffer.from(text.slice(dot + 1), 'base64url').toString('hex')]
  }
  return split(mutant).join() === split(token).join()
}
