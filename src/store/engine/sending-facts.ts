import { query, type SqlSteps } from './sql-steps.ts'

/** Lists the countries in which codes were verified, the one with most first. */
export function* listVerifiedCountries(): SqlSteps<string[]> {
  const rows = yield* query<{ country: string }>(
    `select country from breakdown_counts where country <> '' and verified > 0
     group by country order by sum(verified) desc, country limit 20`,
  )
  return rows.map(({ country }) => country)
}

/** Live sends among the newest requests. `untold`: those that told neither the address nor the device of a user. */
export type SendCounts = { sends: number; untold: number }

export const noSends: SendCounts = { sends: 0, untold: 0 }

export function* countSends(): SqlSteps<SendCounts> {
  const [counts = noSends] = yield* query<SendCounts>(
    `select cast(count(*) as integer) as sends,
       cast(count(case when client_ip is null and contexts is null then 1 end) as integer) as untold
     from (select environment, client_ip, contexts from otp_requests order by id desc limit 1000) newest
     where environment = 'live'`,
  )
  return counts
}
