import { Option } from 'commander'
import { channels } from '../../src/shared/otp-values.ts'
import { shellWord } from '../../src/shared/shell-word.ts'
import type { EnvFileOption } from '../client/credentials.ts'
import { pairsParser, readVariables } from '../terminal/pairs.ts'
import { countryFlags, countryHelp } from './country-option.ts'
import { choiceOption, numberOption, textOption, type FieldOptions } from './field-options.ts'

export const phoneHelp = 'like +14155550100, or as it is written in --country'

/** Options of otp send, by the property of the request body that they set. Other commands have some of them. */
export const otpOptions = {
  country: textOption(countryFlags, countryHelp),
  channel: choiceOption('--channel <channel>', 'channel to use', channels),
  locale: textOption('--locale <tag>', 'language of the message, like en or pt-BR'),
  ttlSeconds: numberOption('--ttl <seconds>', 'code lifetime, 60 to 600 seconds'),
  metadata: {
    flags: '--metadata <key=value>',
    help: 'data of yours, which events repeat; up to 10 times',
    isRepeatable: true,
    parse: pairsParser('--metadata', 'order=4711'),
  },
  clientIp: textOption(
    '--client-ip <address>',
    "end user's IP address; known networks have limits of their own",
  ),
  deviceId: textOption(
    '--device-id <id>',
    "name of the end user's device; known devices have limits of their own",
  ),
  challenge: textOption('--challenge <token>', 'token of the challenge that the end user passed'),
} as const

/** Options for the text of a message, and the payment that it shows. */
export const templateOptions: FieldOptions<{
  template?: string
  variables?: { amount: string; payee: string }
}> = {
  template: textOption('--template <name>', 'template of the application for the text'),
  variables: {
    flags: '--variable <name=value>',
    help: 'amount=… and payee=… of a payment, for a template that shows them',
    isRepeatable: true,
    parse: readVariables,
  },
}

/** Creates the option for the credentials of the application. */
export const envFileOption = () =>
  new Option(
    '--env-file <path>',
    "file with the application's credentials (default: OTPD_CLIENT_ID, OTPD_CLIENT_SECRET, OTPD_API_KEY)",
  )

/** Repeats the option in the next command; empty without it. */
export const envFileFlag = ({ envFile }: EnvFileOption) =>
  envFile === undefined ? '' : ` --env-file ${shellWord(envFile)}`
