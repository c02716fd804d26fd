import { Type } from '@sinclair/typebox'
import { templateNamePattern } from '../../domain/model/message-template.ts'

/** Amount and payee of a payment, as a send and its verification have them. */
const variables = (description: string) =>
  Type.Optional(
    Type.Object(
      {
        amount: Type.String({
          minLength: 1,
          maxLength: 64,
          errorText: 'Expected an amount such as 9.99 EUR',
          description: 'Number with its currency, such as `9.99 EUR`; up to 24 characters.',
        }),
        payee: Type.String({
          minLength: 1,
          maxLength: 64,
          errorText: 'Expected the name of a payee',
          description: 'Name of the payee, up to 40 characters, without links and long numbers.',
        }),
      },
      { additionalProperties: false, description },
    ),
  )

/** Template of a send, and the payment that it shows. */
export const templateFields = {
  template: Type.Optional(
    Type.String({
      pattern: templateNamePattern,
      errorText: 'Expected the name of a template, such as payment',
      description: 'Name of a template of the application. Without one, the message has the built-in text.',
    }),
  ),
  variables: variables(
    'Amount and payee of a payment, for a template that shows them. The code is bound to them: it is right only together with them.',
  ),
}

/** Template of the messages of a session, and the payment that its page shows. */
export const sessionTemplateFields = {
  ...templateFields,
  variables: variables(
    'Amount and payee of a payment that the user confirms, for a template that shows them. The page shows both, and each code is bound to them.',
  ),
}

/** Payment that a verification repeats. */
export const checkedVariables = variables(
  'Amount and payee of the payment that you are about to make, as in the send. With others, or without them, the code is wrong and counts as an attempt.',
)
