import { example } from './error-example.ts'

/** One example of every refusal that a limit makes, by its name in `errorExamples`. */
export const rateLimitExamples = {
  SEND_RATE: example(
    'RATE_LIMITED',
    'This application may send 5 codes per minute (plan free). Try again in 41 s.',
    { reason: 'APP_RATE', metadata: { policy: 'otp-send', limit: 5, windowSeconds: 60, plan: 'free' } },
  ),
  VERIFY_RATE: example(
    'RATE_LIMITED',
    'This application may verify 10 codes per minute (plan free). Try again in 41 s.',
    { reason: 'APP_RATE', metadata: { policy: 'otp-verify', limit: 10, windowSeconds: 60, plan: 'free' } },
  ),
  PHONE_SEND_BUDGET: example(
    'RATE_LIMITED',
    'Too many codes were sent to this phone number. Try again in 8 min.',
    { reason: 'PHONE_SEND_BUDGET' },
  ),
  PHONE_CHECK_BUDGET: example(
    'RATE_LIMITED',
    'Too many wrong codes were entered for this phone number. Try again in 54 min.',
    { reason: 'PHONE_CHECK_BUDGET', metadata: { failuresMax: 25 } },
  ),
  RESEND_TOO_SOON: example(
    'RATE_LIMITED',
    'This code was sent less than 30 seconds ago. Try again in 12 s.',
    { reason: 'RESEND_TOO_SOON' },
  ),
  CONSOLE_RATE: example('RATE_LIMITED', 'You may make 600 calls per minute (plan free). Try again in 7 s.', {
    reason: 'CONSOLE_RATE',
    metadata: { policy: 'console', limit: 600, windowSeconds: 60, plan: 'free' },
  }),
  LOOKUP_RATE: example(
    'RATE_LIMITED',
    'This application may make 60 look-ups per minute (plan free). Try again in 7 s.',
    { reason: 'LOOKUP_RATE', metadata: { policy: 'lookups', limit: 60, windowSeconds: 60, plan: 'free' } },
  ),
  SESSION_RATE: example(
    'RATE_LIMITED',
    'This application may create 50 sessions per minute (plan free). Try again in 41 s.',
    { reason: 'SESSION_RATE', metadata: { policy: 'sessions', limit: 50, windowSeconds: 60, plan: 'free' } },
  ),
  WEBHOOK_TESTS: example('RATE_LIMITED', 'You may send 10 test events per minute. Try again in 30 s.', {
    reason: 'WEBHOOK_TESTS',
    metadata: { policy: 'webhook-test', limit: 10, windowSeconds: 60 },
  }),
  WEBHOOK_REDELIVERIES: example(
    'RATE_LIMITED',
    'You may redeliver or recover 60 times per minute. Try again in 30 s.',
    {
      reason: 'WEBHOOK_REDELIVERIES',
      metadata: { policy: 'webhook-redeliver', limit: 60, windowSeconds: 60 },
    },
  ),
  STREAM_LIMIT: example(
    'RATE_LIMITED',
    'You already have 20 log streams open, the maximum. Close one, then retry.',
    { reason: 'STREAM_LIMIT', metadata: { limit: 20 } },
  ),
  LOGIN_ATTEMPTS: example('RATE_LIMITED', 'Too many failed logins. Try again in 12 min.', {
    reason: 'LOGIN_ATTEMPTS',
  }),
}
