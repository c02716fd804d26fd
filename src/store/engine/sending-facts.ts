/** Lists the countries in which codes were verified, the one with most first. SQLite and PostgreSQL understand it. */
export const verifiedCountriesSql = `select country from breakdown_counts where country <> '' and verified > 0
  group by country order by sum(verified) desc, country limit 20`

/** Live sends among the newest requests. `untold`: those that told neither the address nor the device of a user. */
export type SendCounts = { sends: number; untold: number }

/** Counts them. SQLite and PostgreSQL understand it. */
export const sendCountsSql = `select cast(count(*) as integer) as sends,
  cast(count(case when client_ip is null and contexts is null then 1 end) as integer) as untold
  from (select environment, client_ip, contexts from otp_requests order by id desc limit 1000) newest
  where environment = 'live'`
