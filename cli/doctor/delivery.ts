import type { Config } from '../../src/config/config.ts'
import type { ConfiguredProvider } from '../../src/server/start.ts'
import { fault, ok, warning, type Check } from './check.ts'
import { routeChecks } from './routes.ts'
import { isLoopback } from '../session/server-choice.ts'
import { recentTime } from '../terminal/text.ts'

export type OpenCircuit = { name: string; failure: string; openUntil: number }

export type DeliveryFacts = {
  config: Config
  /** Each provider with the channels that its settings are enough for. */
  providers: readonly ConfiguredProvider[]
  /** Of the server that runs here. */
  openCircuits: readonly OpenCircuit[]
  nowMs: number
  /** Where providers are to be written to. */
  configFile: string
}

/** What the sending of codes to real phones lacks. */
export function deliveryChecks(facts: DeliveryFacts): Check[] {
  const { config, providers, configFile } = facts
  if (providers.length === 0) {
    return [
      warning(
        'live sending',
        'there is no provider: codes of live applications stay in the inbox',
        `Write into ${configFile}: [[providers]] name = "main" kind = "twilio" … (README, Providers)`,
      ),
    ]
  }
  return [
    ...providers.flatMap((provider) => providerChecks(provider, facts)),
    ...routeChecks(config, providers),
    receiptCheck(facts),
    ...guardChecks(config),
  ]
}

function providerChecks(
  { name: provider, kind, title, channels }: ConfiguredProvider,
  facts: DeliveryFacts,
): Check[] {
  const { config, openCircuits, nowMs, providers } = facts
  const name = `provider ${provider}`
  const { routes } = config.delivery
  const settings = config.delivery.providers.find((entry) => entry.name === provider)?.values ?? {}
  const checks: Check[] = []
  const findOpenCircuit = (candidate: { name: string }) =>
    openCircuits.find((circuit) => circuit.name === candidate.name && circuit.openUntil > nowMs)
  const openCircuit = findOpenCircuit({ name: provider })
  if (openCircuit !== undefined) {
    const openUntilText = recentTime(new Date(openCircuit.openUntil).toISOString(), nowMs)
    const isLast = providers.every(findOpenCircuit)
    checks.push(
      (isLast ? fault : warning)(
        name,
        `rests until ${openUntilText}: ${openCircuit.failure}${isLast ? ', and there is no other' : ''}`,
        `Ask it yourself: otpd provider test ${provider} PHONE`,
      ),
    )
  }
  if (routes.length > 0 && !routes.some((route) => route.providers.includes(provider))) {
    checks.push(
      warning(name, 'no route names it, so it carries nothing', `Add it to the providers of a [[routes]].`),
    )
  }
  const isRemote = settings.host !== undefined && !isLoopback(settings.host)
  if (kind === 'smpp' && settings.tls === 'off' && isRemote) {
    checks.push(
      warning(name, 'codes go to the SMSC in clear', 'Set tls = "on", unless a VPN carries the connection.'),
    )
  }
  if (kind === 'smpp' && settings.bind === 'transmitter') {
    checks.push(
      warning(name, 'a transmitter gets no receipts', 'Set bind = "transceiver", where the SMSC allows it.'),
    )
  }
  return checks.length > 0 ? checks : [ok(name, `${title}: ${channels.join(', ')}`)]
}

/** SMPP brings receipts over its own connection; the others have to reach this server. */
function receiptCheck({ config, providers }: DeliveryFacts): Check {
  const name = 'receipts'
  const { publicUrl } = config
  const callbackProviders = providers.filter(({ name: provider, kind }) => {
    const values = config.delivery.providers.find((entry) => entry.name === provider)?.values ?? {}
    return kind !== 'smpp' && !Object.values(values).some(isOnThisMachine)
  })
  const isReachable = publicUrl !== null && !isLoopback(new URL(publicUrl).hostname)
  if (callbackProviders.length === 0 || isReachable) {
    return ok(
      name,
      callbackProviders.length === 0 ? 'need no public URL' : `come to ${publicUrl}/v1/callbacks/…`,
    )
  }
  return warning(
    name,
    `none from ${callbackProviders.map((provider) => provider.name).join(', ')}: without a public URL they have nowhere to go`,
    'Write below [server]: publicUrl = "https://otp.example.com"',
  )
}

const isOnThisMachine = (value: string) => URL.canParse(value) && isLoopback(new URL(value).hostname)

function guardChecks({ guard }: Config): Check[] {
  const name = 'guard'
  const { mode, countries } = guard
  if (mode === 'off') {
    return [
      warning(name, 'it is off: nothing shows or stops SMS pumping', 'Write below [guard]: mode = "monitor"'),
    ]
  }
  const checks = [
    mode === 'enforce'
      ? ok(name, 'blocks what its rules forbid')
      : warning(
          name,
          'it only watches: what its rules forbid is sent',
          'See what it would block with: otpd guard status; then below [guard]: mode = "enforce"',
        ),
  ]
  if (countries.length > 0) return [...checks, ok('countries', countries.join(', '))]
  return [
    ...checks,
    warning(
      'countries',
      'every country of the world gets codes',
      'Name yours below [guard]: countries = ["NL"]',
    ),
  ]
}
