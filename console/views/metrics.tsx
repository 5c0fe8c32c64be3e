/** Search over the whole catalogue: loaded once, then every letter narrows it at once. */
import { useMemo } from 'preact/hooks'
import { type CatalogueEntry, familiesOf, MAX_ENTRIES, matcherOf, useCatalogue } from '../catalogue.ts'
import { Name } from '../parts/name.tsx'
import { Search } from '../parts/search.tsx'
import { Loading, Problem } from '../parts/state.tsx'
import { Cells, type Column, Heads } from '../parts/table.tsx'
import { VirtualTable } from '../parts/virtual-table.tsx'
import { linkTo, type ViewProps } from '../route.ts'
import { formatCount } from '../units.ts'

const COLUMNS: readonly Column<CatalogueEntry>[] = [
  {
    title: 'Name',
    cellLook: 'code',
    cell: ({ name }) => (
      <a href={linkTo('metrics', name)}>
        <Name text={name} />
      </a>
    ),
  },
  { title: 'Unit', look: 'short', cell: ({ unit }) => (unit === '1' ? '' : <Name text={unit} max={12} />) },
  { title: 'Type', look: 'short wide', cell: ({ kind, type }) => (kind === 'event' ? 'event' : type) },
  { title: 'Description', look: 'wide', cell: ({ description }) => <bdi title={description}>{description}</bdi> },
]

export function MetricsView({ consumer, router }: ViewProps) {
  const text = router.route.value.args.get('match') ?? ''
  const { entries, isLoaded, problem } = useCatalogue(consumer)
  const found = useMemo(() => entries.filter(matcherOf(text)), [entries, text])
  const families = useMemo(() => familiesOf(entries), [entries])
  const linkOf = (match: string): string => linkTo('metrics', '', match === '' ? {} : { match })
  return (
    <>
      <header>
        <h1>Metrics</h1>
        <Search
          label="Search metrics"
          placeholder="Part of a name, or a pattern with *"
          text={text}
          onText={(value) => router.replace(linkOf(value))}
        />
      </header>
      <nav class="families" aria-label="Families">
        {families.map(([family, count]) => (
          <a
            key={family}
            class="pill"
            href={linkOf(text === `${family}*` ? '' : `${family}*`)}
            aria-current={text === `${family}*` ? 'true' : undefined}
          >
            <Name text={family} max={24} />* <span class="number">{formatCount(count)}</span>
          </a>
        ))}
      </nav>
      <Problem text={problem} />
      <section class="card" aria-label="Metrics">
        <div class="head">
          {entries.length === 0 ? null : (
            <h2>
              {formatCount(found.length)} of {formatCount(entries.length)}
              {isLoaded ? '' : '…'}
            </h2>
          )}
          {entries.length < MAX_ENTRIES ? null : (
            <p class="note">
              Only the first {formatCount(MAX_ENTRIES)} are searched; a link with the whole name opens any.
            </p>
          )}
        </div>
        {entries.length > 0 || isLoaded ? null : <Loading what="the catalogue" />}
        {found.length === 0 && isLoaded && problem === '' ? (
          <p class="empty">{text === '' ? 'There is no metric that you may read.' : `No metric matches “${text}”.`}</p>
        ) : null}
        {found.length === 0 ? null : (
          <VirtualTable
            label="Metrics"
            rows={found}
            keyOf={({ name }) => name}
            head={<Heads columns={COLUMNS} />}
            cells={(entry) => <Cells columns={COLUMNS} row={entry} />}
          />
        )}
      </section>
    </>
  )
}
