import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startServer, type RunningServer } from '../helpers/binary.ts'
import { credentialHeaders } from '../helpers/service.ts'
import { authToken, createTwilioSettings, startGateway, type Gateway, type SmsMessage } from './gateway.ts'

const email = 'ada@example.com'
const password = 'correct horse battery'
const reloaded = '"msg":"delivery reloaded"'

type FaultyProvider = { url: string; messages: SmsMessage[] }

export type FailoverFixture = ReturnType<typeof createFailoverFixture>

/** The compiled server with its configuration file, and local servers that act as its providers. */
export function createFailoverFixture() {
  const cleanups: Array<() => unknown> = []
  const home = mkdtempSync(join(tmpdir(), 'otpd-faults-'))
  const configFile = join(home, 'otpd.toml')
  /** Providers by fault. Each has its own phone prefix, and fails over to `spare`. */
  const faults = new Map<string, FaultyProvider>()
  let phones = 0
  let server: RunningServer | undefined
  let headers: Record<string, string> = {}

  const runningServer = () => {
    if (!server) throw new Error('the server has not been started')
    return server
  }
  const phonePrefix = (name: string) => `+316550${String([...faults.keys()].indexOf(name)).padStart(2, '0')}`

  function addGateway(): Gateway {
    const gateway = startGateway()
    cleanups.push(gateway.stop)
    return gateway
  }
  const spare = addGateway()

  const env = () => ({
    OTPD_CONFIG: configFile,
    OTPD_DATA_DIR: join(home, 'data'),
    OTPD_SECRET_TWILIO: authToken,
    OTPD_SEND_PER_MINUTE: '0',
    OTPD_VERIFY_PER_MINUTE: '0',
    OTPD_GUARD_MODE: 'off',
    OTPD_PHONE_SEND_BUDGET: 'off',
    // Logs each request after its response, so every other line about that request is in the log by then.
    OTPD_LOG_LEVEL: 'debug',
  })

  const start = async (extraEnv: Record<string, string> = {}) => {
    server = await startServer({ home, env: { ...env(), ...extraEnv } })
  }

  /** Creates a live application. @returns its credentials as headers */
  async function createApplication(name: string) {
    const options = ['--project', 'shop', '--env', 'live', '--json']
    const created = await runningServer().otpd(['app', 'create', name, ...options])
    return credentialHeaders(JSON.parse(created.stdout).data)
  }

  /** Calls the API as the application `web`, unless the headers are another's. */
  async function call<T>(
    method: string,
    path: string,
    body?: object,
    extraHeaders: Record<string, string> = {},
  ) {
    const response = await fetch(`${runningServer().url}${path}`, {
      method,
      headers: { ...headers, ...extraHeaders, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    // Typed as the test expects it; any other response fails an assertion.
    const apiResponse: {
      data: T
      error: { code: string; reason: string; metadata: { requestId: string } }
    } = JSON.parse(await response.text())
    return {
      ...apiResponse,
      status: response.status,
      traceId: response.headers.get('x-request-id') ?? '',
    }
  }

  return {
    home,
    configFile,
    faults,
    spare,
    env,
    server: runningServer,
    onDispose: (cleanup: () => unknown) => cleanups.push(cleanup),
    addGateway,

    /** Adds a faulty provider whose server behaves as given. */
    addFault(name: string, behave: (gateway: Gateway) => void) {
      const gateway = addGateway()
      behave(gateway)
      faults.set(name, gateway)
    },

    /** A new phone number that is routed to this faulty provider first. */
    nextPhone: (name: string) => `${phonePrefix(name)}${String(++phones).padStart(3, '0')}`,

    writeConfig() {
      const providers = [...faults].map(([name, { url }]) => createTwilioSettings(name, url))
      const tables = [...providers, createTwilioSettings('spare', spare.url)].map(
        ({ name, values }) =>
          `[[providers]]\nname = "${name}"\nkind = "twilio"\naccountSid = "${values['accountSid']}"\n` +
          `authTokenEnv = "OTPD_SECRET_TWILIO"\nfrom = "${values['from']}"\nbaseUrl = "${values['baseUrl']}"\n`,
      )
      const routes = [...faults.keys()].map(
        (name) =>
          `[[routes]]\nchannel = "sms"\nprefixes = ["${phonePrefix(name)}"]\nproviders = ["${name}", "spare"]\n`,
      )
      const last = '[[routes]]\nchannel = "sms"\nproviders = ["spare"]\n'
      writeFileSync(configFile, [...tables, ...routes, last].join('\n'), { mode: 0o600 })
    },

    /** Makes the server reload its configuration, and waits until it has. */
    async reload() {
      const times = runningServer().log().split(reloaded).length
      process.kill(runningServer().pid, 'SIGHUP')
      await runningServer().waitForLog(reloaded, times)
    },

    start,

    /** Starts the server and creates an account and a project. */
    async setUp(extraEnv: Record<string, string> = {}) {
      await start(extraEnv)
      const { otpd, setupToken } = runningServer()
      await otpd(['login', '--setup-token', setupToken(), '--email', email, '--password-stdin'], {
        input: password,
      })
      await otpd(['project', 'create', 'shop'])
      headers = await createApplication('web')
    },

    createApplication,
    call,

    /** Verifies a request with the code of the message that the phone got. */
    verify(requestId: string, message: SmsMessage | undefined) {
      return call('POST', '/v1/otp/verify', { requestId, code: message?.code ?? '' })
    },

    async dispose() {
      await server?.stop()
      for (const cleanup of cleanups) await cleanup()
      rmSync(home, { recursive: true, force: true })
    },
  }
}
