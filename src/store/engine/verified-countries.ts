/** Lists the countries in which codes were verified, the one with most first. SQLite and PostgreSQL understand it. */
export const verifiedCountriesSql = `select country from breakdown_counts where country <> '' and verified > 0
  group by country order by sum(verified) desc, country limit 20`
