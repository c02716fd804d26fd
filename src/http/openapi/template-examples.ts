import { example } from './error-example.ts'

const missingPayee =
  'The placeholder {payee} is missing. The message of a payment must show its amount and its payee.'

const unknownTemplate = 'The application has no template with this name. Create it, or name another.'
const missingVariables = 'The template needs amount and payee.'

/** One example of every error about the templates of an application. */
export const templateExamples = {
  TEMPLATE_NOT_FOUND: example('NOT_FOUND', 'This application has no template with this name.'),
  TEMPLATE_LIMIT_REACHED: example(
    'CONFLICT',
    'An application can have at most 20 templates. Delete one first.',
    { reason: 'TEMPLATE_LIMIT_REACHED', metadata: { limit: 20 } },
  ),
  TEMPLATE_UNKNOWN: example('INVALID_ARGUMENT', `Invalid request. template: ${unknownTemplate}`, {
    details: [{ in: 'body', path: 'template', code: 'INVALID', message: unknownTemplate }],
  }),
  VARIABLES_MISSING: example('INVALID_ARGUMENT', `Invalid request. variables: ${missingVariables}`, {
    details: [{ in: 'body', path: 'variables', code: 'INVALID', message: missingVariables }],
  }),
  INVALID_PAYMENT: example(
    'INVALID_CODE',
    'The code is wrong, or the variables are not those of its payment. Check it and enter it again.',
    { metadata: { attemptsRemaining: 4 } },
  ),
  INVALID_TEMPLATE: example('INVALID_ARGUMENT', `Invalid request. texts.en: ${missingPayee}`, {
    details: [{ in: 'body', path: 'texts.en', code: 'INVALID', message: missingPayee }],
  }),
}
