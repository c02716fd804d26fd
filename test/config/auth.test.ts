import { describe, expect, test } from 'bun:test'
import { load, requireConfig, loadEnv, requireProblem } from '../helpers/config.ts'

const hexKey = '00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff'
const keyBytes = Buffer.from(hexKey, 'hex')

describe('the master key', () => {
  const base64 = keyBytes.toString('base64')

  test.each([
    ['hexadecimal', hexKey],
    ['hexadecimal in capitals', hexKey.toUpperCase()],
    ['base64', base64],
    ['base64 without padding', base64.replace('=', '')],
    ['base64url', keyBytes.toString('base64url')],
  ])('may be %s', (_, text) => {
    expect(requireConfig(loadEnv({ OTPD_MASTER_KEY: text })).secrets.masterKey).toEqual(
      new Uint8Array(keyBytes),
    )
  })

  test.each([
    ['text with a line break', `${hexKey}\n`],
    ['the bytes themselves', new Uint8Array(keyBytes)],
  ])('may be a file of %s', (_, content) => {
    const config = requireConfig(loadEnv({ OTPD_MASTER_KEY_FILE: '/key' }, { '/key': content }))
    expect(config.secrets.masterKey).toEqual(new Uint8Array(keyBytes))
  })

  test.each(['short', `${hexKey}00`, 'correct horse battery staple now', '0'.repeat(64), 'A'.repeat(43)])(
    'refuses %s without repeating it',
    (text) => {
      const problem = requireProblem(loadEnv({ OTPD_MASTER_KEY: text }))
      expect(problem.text).not.toContain(text.slice(0, 5))
      expect(requireProblem(loadEnv({ OTPD_MASTER_KEY_FILE: '/key' }, { '/key': text })).source).toBe(
        'OTPD_MASTER_KEY_FILE',
      )
    },
  )

  test('is refused if it is set twice', () => {
    const files = { '/key': hexKey }
    const problem = requireProblem(loadEnv({ OTPD_MASTER_KEY: hexKey, OTPD_MASTER_KEY_FILE: '/key' }, files))
    expect(problem).toMatchObject({ source: 'OTPD_MASTER_KEY_FILE', remedy: 'Remove one of the two.' })
  })

  test('may be a credential that systemd passes to the service', () => {
    const files = { '/run/credentials/otpd.service/otpd-master-key': hexKey }
    const modes = { '/run/credentials/otpd.service/otpd-master-key': 0o440 }
    const env = { HOME: '/home/ada', CREDENTIALS_DIRECTORY: '/run/credentials/otpd.service' }
    const { secrets } = requireConfig(load({ env, files, modes }))
    expect(secrets.masterKey).toEqual(new Uint8Array(keyBytes))
    expect(secrets.masterKeySource).toStartWith('$CREDENTIALS_DIRECTORY/otpd-master-key')
    expect(requireConfig(load({ env })).secrets).toMatchObject({ masterKey: null, masterKeySource: null })
    const problem = requireProblem(load({ env: { ...env, OTPD_MASTER_KEY: hexKey }, files }))
    expect(problem.remedy).toBe('Remove one of the two.')
  })

  test.each([
    ['/etc/otpd.key', 0o644, false],
    ['/etc/otpd.key', 0o604, false],
    ['/etc/otpd.key', 0o640, true],
    ['/etc/otpd.key', 0o400, true],
    ['/run/secrets/otpd', 0o444, true],
    ['/run/secrets-of-others', 0o444, false],
    ['/creds/other-name', 0o444, true],
  ])('in the file %s with mode %o is accepted: %p', (path, mode, isAccepted) => {
    const env = { HOME: '/home/ada', OTPD_MASTER_KEY_FILE: path, CREDENTIALS_DIRECTORY: '/creds' }
    const loaded = load({ env, files: { [path]: hexKey }, modes: { [path]: mode } })
    if (isAccepted) expect(requireConfig(loaded).secrets.masterKeySource).toContain(path)
    else expect(requireProblem(loaded).message).toBe(`Other users can read ${path}.`)
  })

  test('must exist at the configured path', () => {
    expect(requireProblem(loadEnv({ OTPD_MASTER_KEY_FILE: '/key' })).message).toBe(
      'There is no file of that name.',
    )
  })
})

describe('the identity provider', () => {
  const env = { OTPD_OIDC_ISSUER: 'https://id.example.com/', OTPD_OIDC_AUDIENCE: 'one, two,one' }

  test('is read with its audiences, and with the issuer unchanged', () => {
    const config = requireConfig(loadEnv({ ...env, OTPD_OIDC_CLIENT_ID: 'cli' }))
    expect(config.oidc).toEqual({
      issuer: 'https://id.example.com/',
      audience: ['one', 'two'],
      jwksUri: null,
      clientId: 'cli',
    })
  })

  test('keeps sign-up closed by default, and sign-up can be opened', () => {
    expect(requireConfig(loadEnv(env)).signup).toBe('closed')
    expect(requireConfig(loadEnv({ ...env, OTPD_SIGNUP: 'open' })).signup).toBe('open')
    expect(requireConfig(loadEnv({ OTPD_SIGNUP: 'open' })).signup).toBe('open')
  })

  test.each(['http://localhost:9000', 'http://127.0.0.1:9000/realm', 'http://[::1]:9000'])(
    'may be %s',
    (issuer) => {
      expect(requireConfig(loadEnv({ ...env, OTPD_OIDC_ISSUER: issuer })).oidc?.issuer).toBe(issuer)
    },
  )

  test.each([
    'http://id.example.com',
    'http://127.0.0.1.example.com',
    'http://[::ffff:127.0.0.1]:9000',
    'http://localhost@evil.example',
    'https://id.example.com/?a=b',
    'id.example.com',
  ])('refuses %s', (issuer) => {
    expect(requireProblem(loadEnv({ ...env, OTPD_OIDC_ISSUER: issuer })).source).toBe('OTPD_OIDC_ISSUER')
  })

  test('refuses keys over plain http', () => {
    const problem = requireProblem(loadEnv({ ...env, OTPD_OIDC_JWKS_URI: 'http://id.example.com/keys' }))
    expect(problem.source).toBe('OTPD_OIDC_JWKS_URI')
    expect(problem.message).toBe('An answer over plain http can be forged.')
  })

  test.each<Record<string, string>>([{}, { OTPD_OIDC_AUDIENCE: '' }, { OTPD_OIDC_AUDIENCE: ' , ' }])(
    'needs an audience: %p',
    (audience) => {
      const problem = requireProblem(loadEnv({ OTPD_OIDC_ISSUER: 'https://id.example.com', ...audience }))
      expect(problem.text).toContain('OTPD_OIDC_AUDIENCE')
    },
  )

  test.each(['OTPD_OIDC_AUDIENCE', 'OTPD_OIDC_CLIENT_ID'])(
    'is reported as missing if only %s is set',
    (name) => {
      expect(requireProblem(loadEnv({ [name]: 'x' }))).toMatchObject({ source: name })
    },
  )
})

describe('the first account', () => {
  const adminEnv = { OTPD_ADMIN_EMAIL: 'ada@example.com', OTPD_ADMIN_PASSWORD_FILE: '/pw' }

  test('has an e-mail address, and a password from a file', () => {
    const config = requireConfig(loadEnv(adminEnv, { '/pw': ' correct horse \n' }))
    expect([config.adminEmail, config.secrets.adminPassword]).toEqual(['ada@example.com', ' correct horse '])
  })

  test('needs both the address and the password file', () => {
    expect(requireProblem(loadEnv({ OTPD_ADMIN_EMAIL: 'ada@example.com' })).remedy).toContain(
      'OTPD_ADMIN_PASSWORD_FILE',
    )
    const problem = requireProblem(loadEnv({ OTPD_ADMIN_PASSWORD_FILE: '/pw' }, { '/pw': 'correct horse' }))
    expect(problem.remedy).toContain('OTPD_ADMIN_EMAIL')
  })

  test.each(['', '\n', 'one line\nanother\n'])('refuses the password file %p', (content) => {
    const problem = requireProblem(loadEnv(adminEnv, { '/pw': content }))
    expect(problem.source).toBe('OTPD_ADMIN_PASSWORD_FILE')
    expect(problem.text).not.toContain('another')
  })

  test.each(['ada', 'ada@', 'a b@example.com', 'a@b@c', `${'a'.repeat(255)}@b`])(
    'refuses the address %s',
    (email) => {
      const env = { ...adminEnv, OTPD_ADMIN_EMAIL: email }
      expect(requireProblem(loadEnv(env, { '/pw': 'correct horse' })).source).toBe('OTPD_ADMIN_EMAIL')
    },
  )
})
