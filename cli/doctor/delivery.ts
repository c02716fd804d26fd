import { isFailing } from '../../src/shared/failing-providers.ts'
import type { Config } from '../../src/config/config.ts'
import type { OpenCircuit } from '../../src/host/host.ts'
import type { ConfiguredProvider } from '../../src/server/start.ts'
import { fault, ok, warning, type Check } from '../../src/shared/check.ts'
import { routeChecks } from './routes.ts'
import { isLoopback, isLoopbackAddress } from '../../src/shared/loopback.ts'
import { guardAlertCheck, openCircuitCheck } from '../../src/shared/operating-checks.ts'

type DeliveryFacts = {
  config: Config
  /** Each provider with the channels that its settings support. */
  providers: readonly ConfiguredProvider[]
  /** Open circuits of the server that runs on this machine. */
  openCircuits: readonly OpenCircuit[]
  /** Countries with more unverified messages than usual, with the end of the alert. */
  guardAlerts: ReadonlyArray<{ country: string; until: number }>
  /** Countries in which codes were verified, the one with most first. */
  verifiedCountries: readonly string[]
  /** Live sends of late, and those of them that told neither `clientIp` nor `deviceId`. */
  sendCounts: { sends: number; untold: number }
  /** Answer of the challenge's service to a call with the secret; null if it was not called. */
  challenge: { fault: string | undefined } | null
  nowMs: number
  /** Configuration file to suggest for new settings. */
  configFile: string
}

/** Checks what sending codes to real phones needs: providers, routes, receipts and the guard. */
export function deliveryChecks(facts: DeliveryFacts): Check[] {
  const { config, providers, configFile } = facts
  if (providers.length === 0) {
    return [
      warning(
        'live sending',
        'no provider is configured: codes of live applications stay in the inbox',
        `Add one: otpd provider add, which writes ${configFile} (otpd docs providers)`,
      ),
    ]
  }
  return [
    ...providers.flatMap((provider) => providerChecks(provider, facts)),
    ...routeChecks(config, providers),
    receiptCheck(facts),
    ...sendRateChecks(facts),
    ...guardChecks(facts),
    ...clientIpChecks(facts),
    ...challengeChecks(facts),
    ...alertChecks(facts),
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
    openCircuits.find((circuit) => circuit.name === candidate.name && isFailing(circuit, nowMs))
  const openCircuit = findOpenCircuit({ name: provider })
  if (openCircuit !== undefined) {
    checks.push(openCircuitCheck(openCircuit, providers.every(findOpenCircuit)))
  }
  if (routes.length > 0 && !routes.some((route) => route.providers.includes(provider))) {
    checks.push(
      warning(
        name,
        'no route uses it, so it sends nothing',
        `Add it to the providers of a [[routes]] entry.`,
      ),
    )
  }
  const isRemote = settings.host !== undefined && !isLoopback(settings.host)
  if (kind === 'smpp' && settings.tls === 'off' && isRemote) {
    checks.push(
      warning(name, 'codes go to the SMSC unencrypted', 'Set tls = "on", unless the connection uses a VPN.'),
    )
  }
  if (kind === 'smpp' && settings.bind === 'transmitter') {
    checks.push(
      warning(name, 'a transmitter gets no receipts', 'Set bind = "transceiver", if the SMSC allows it.'),
    )
  }
  return checks.length > 0 ? checks : [ok(name, `${title}: ${channels.join(', ')}`)]
}

/** Checks that providers can deliver receipts. SMPP uses its own connection; the others call this server's public URL. */
function receiptCheck({ config, providers }: DeliveryFacts): Check {
  const name = 'receipts'
  const { publicUrl } = config
  const callbackProviders = providers.filter(({ name: provider, kind }) => {
    const values = config.delivery.providers.find((entry) => entry.name === provider)?.values ?? {}
    return kind !== 'smpp' && !Object.values(values).some((value) => isLoopbackAddress(value))
  })
  const isReachable = publicUrl !== null && !isLoopback(new URL(publicUrl).hostname)
  if (callbackProviders.length === 0 || isReachable) {
    return ok(
      name,
      callbackProviders.length === 0 ? 'need no public URL' : `received at ${publicUrl}/v1/callbacks/…`,
    )
  }
  return warning(
    name,
    `none from ${callbackProviders.map((provider) => provider.name).join(', ')}: they need a public URL to call`,
    'Set in [server]: publicUrl = "https://otp.example.com"',
  )
}

/** The default of the free plan, in sends a minute. */
const developmentRateMax = 5

/** Warns if every plan has so low a rate that one attacker uses up the sends of a public form. */
function sendRateChecks({ config: { plans }, configFile }: DeliveryFacts): Check[] {
  const rates = Object.values(plans).map(({ sendPerMinute }) => sendPerMinute)
  if (rates.some((rate) => rate === 0 || rate > developmentRateMax)) return []
  return [
    warning(
      'send rate',
      `at most ${Math.max(...rates)} sends a minute for all users of an application: 30 requests a minute on a public form leave most honest users none`,
      `Set in ${configFile}: [plans.free] sendPerMinute = 60, or a plan of its own (otpd docs limits)`,
    ),
  ]
}

function guardChecks({ config: { guard }, verifiedCountries }: DeliveryFacts): Check[] {
  const name = 'guard'
  const { mode, countries } = guard
  if (mode === 'off') {
    return [
      warning(
        name,
        'off: SMS pumping is neither detected nor stopped',
        'Remove mode from [guard] to block messages that break a rule.',
      ),
    ]
  }
  const checks = [
    mode === 'enforce'
      ? ok(name, 'enforcing: blocks messages that break its rules')
      : warning(
          name,
          'monitoring only: messages that break its rules are sent',
          'See what it would block: otpd guard status; then remove mode from [guard].',
        ),
  ]
  if (countries.length > 0) return [...checks, ok('countries', countries.join(', '))]
  return [
    ...checks,
    warning(
      'countries',
      'codes can be sent to every country',
      verifiedCountries.length === 0
        ? 'List the countries that you serve, as ISO codes, in [guard]: countries = […]'
        : `List the countries that you serve in [guard]. Codes were verified in: countries = [${verifiedCountries.map((country) => `"${country}"`).join(', ')}]`,
    ),
  ]
}

/** Warns if most sends tell nothing by which the guard could tell an attacker from a customer. */
function clientIpChecks({ config: { guard }, sendCounts: { sends, untold } }: DeliveryFacts): Check[] {
  if (guard.mode === 'off' || untold < Math.max(1, sends / 2)) return []
  return [
    warning(
      'clientIp',
      `${untold} of the newest ${sends} live sends told neither clientIp nor deviceId: the guard cannot tell an attacker from a customer, and both get what the country is allowed`,
      'Pass the address of your user as clientIp with each send (otpd docs guard)',
    ),
  ]
}

/** Checks that the service which checks challenges answers, and knows the secret. */
function challengeChecks({ config: { guard }, challenge }: DeliveryFacts): Check[] {
  if (guard.challenge === null) return []
  const name = 'challenge'
  const { kind } = guard.challenge
  if (kind === 'altcha') return [ok(name, 'altcha: made and checked by this server')]
  if (challenge === null) return [ok(name, `${kind}: not called, as its secret is not in this shell`)]
  return [
    challenge.fault === undefined
      ? ok(name, `${kind} answers, and knows the secret`)
      : fault(
          name,
          `${kind} checks no token: ${challenge.fault}; users who pass the challenge are refused`,
          'Compare siteKey and secret in [guard.challenge] with the page of your widget.',
        ),
  ]
}

/** Warns about countries with more unverified messages than usual. */
function alertChecks({ guardAlerts, nowMs }: DeliveryFacts): Check[] {
  const current = guardAlerts.filter(({ until }) => until > nowMs)
  // Several developers may have one of the same country.
  return [...new Set(current.map(({ country }) => country))].map(guardAlertCheck)
}
