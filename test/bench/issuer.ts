import { exportJWK, generateKeyPair, SignJWT } from 'jose'

const algorithm = 'ES256'
const audience = 'bench'

/** An OpenID provider in this process. */
type Issuer = {
  /** Environment of a server that trusts it, and opens an account for everyone who logs in there. */
  env: Record<string, string>
  /** Signs an ID token. @param subject a new one opens an account with its first call */
  signToken(subject: string): Promise<string>
}

let running: Promise<Issuer> | undefined

/** Starts the provider at the first call. It ends with the process, and does not keep it alive. */
export const startIssuer = () => (running ??= start())

async function start(): Promise<Issuer> {
  const { publicKey, privateKey } = await generateKeyPair(algorithm)
  const keys = [{ ...(await exportJWK(publicKey)), kid: 'bench', alg: algorithm, use: 'sig' }]
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => Response.json({ keys }) })
  server.unref()
  const url = `http://127.0.0.1:${server.port}`
  return {
    env: {
      OTPD_OIDC_ISSUER: url,
      OTPD_OIDC_AUDIENCE: audience,
      OTPD_OIDC_JWKS_URI: `${url}/keys`,
      OTPD_SIGNUP: 'open',
    },
    signToken: (subject) =>
      new SignJWT({ sub: subject, iss: url, aud: audience })
        .setIssuedAt()
        .setExpirationTime('12h')
        .setProtectedHeader({ alg: algorithm, typ: 'JWT', kid: 'bench' })
        .sign(privateKey),
  }
}
