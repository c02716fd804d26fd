import { startServer } from '../helpers/binary.ts'
import { startFakeOidcProvider } from '../helpers/oidc.ts'
import { makeForgeries } from './jwt-corpus.ts'
import { formatElapsed, type FuzzPart } from './fuzz-part.ts'
import { seededRandom } from '../helpers/seeded-random.ts'

const characters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=~+/'
const path = '/v1/developer/me'

export const jwt: FuzzPart = {
  name: 'jwt',
  title: 'forged and damaged ID tokens against the compiled binary',
  async run({ runs, seed }, print) {
    const started = performance.now()
    const provider = await startFakeOidcProvider()
    const server = await startServer({
      env: {
        OTPD_OIDC_ISSUER: provider.issuer,
        OTPD_OIDC_AUDIENCE: provider.audience,
        OTPD_SIGNUP: 'open',
        OTPD_CONSOLE_PER_MINUTE: '0',
      },
    })
    const random = seededRandom(seed)
    const findings: string[] = []
    const fetchStatus = async (token: string) => {
      const response = await fetch(server.url + path, { headers: { authorization: `Bearer ${token}` } })
      await response.text()
      return response.status
    }
    try {
      const good = await provider.sign(Date.now())
      const forgeries = await makeForgeries(provider, Date.now())
      for (const { name, token } of forgeries) {
        const status = await fetchStatus(token)
        if (status !== 401) findings.push(`${name}: ${status} for ${token}`)
      }
      for (let completed = 0; completed < runs; completed += 50) {
        const mutants = Array.from({ length: Math.min(50, runs - completed) }, () => mutate(good, random))
        const statuses = await Promise.all(mutants.map(fetchStatus))
        for (const [index, mutant] of mutants.entries()) {
          const status = statuses[index]
          if (status !== 401 && !(status === 200 && isEquivalent(mutant, good)))
            findings.push(`${status} for ${mutant}`)
        }
      }
      if ((await fetchStatus(good)) !== 200)
        findings.push('The valid token was refused, so the refusals prove nothing.')
      print(`${forgeries.length} forged and ${runs} damaged tokens, ${formatElapsed(started)}`)
      return findings
    } finally {
      await server.stop()
      await provider.stop()
    }
  },
}

/** Replaces, adds, removes or swaps one to three characters. */
function mutate(token: string, random: () => number): string {
  let text = token
  for (let remaining = 1 + Math.floor(random() * 3); remaining > 0; remaining--) {
    const position = Math.floor(random() * text.length)
    const character = characters[Math.floor(random() * characters.length)] ?? ''
    const [before, after] = [text.slice(0, position), text.slice(position + 1)]
    const kind = Math.floor(random() * 4)
    if (kind === 0) text = before + character + after
    else if (kind === 1) text = before + character + text.slice(position)
    else if (kind === 2) text = before + after
    else text = before + (text[position + 1] ?? '') + (text[position] ?? '') + text.slice(position + 2)
  }
  return text
}

/** True if only the padding bits in the last character of the signature differ (RFC 4648 §3.5). */
function isEquivalent(mutant: string, token: string): boolean {
  const split = (text: string): [string, string] => {
    const dot = text.lastIndexOf('.')
    return [text.slice(0, dot), Buffer.from(text.slice(dot + 1), 'base64url').toString('hex')]
  }
  return split(mutant).join() === split(token).join()
}
