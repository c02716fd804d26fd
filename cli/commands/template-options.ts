import { readVariables } from '../terminal/pairs.ts'
import { textOption, type FieldOptions } from './field-options.ts'

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
