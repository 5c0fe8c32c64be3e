/** A board of pinned charts. Its URL is the board itself; under a name it is kept in this browser too. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Boards, boardArgs, type ChartSpec, chartLink, chartsOf, chartText, encodeChart } from '../board.ts'
import { BrowserStorage } from '../browser-storage.ts'
import { ChartCard } from '../parts/chart-card.tsx'
import { ChartControls } from '../parts/chart-controls.tsx'
import { ChartPage } from '../parts/chart-page.ts'
import { ConfirmDialog } from '../parts/confirm-dialog.tsx'
import { Name } from '../parts/name.tsx'
import { ShareBoard } from '../parts/share-board.tsx'
import { linkTo, type ViewProps } from '../route.ts'

const HEIGHT = 200

export function BoardView({ consumer, fleet, router, identity }: ViewProps) {
  const { args } = router.route.value
  const boards = useMemo(() => new Boards(new BrowserStorage()), [])
  const page = useMemo(() => new ChartPage(5, fleet), [fleet])
  useEffect(() => page.begin(), [page])
  const [problem, setProblem] = useState('')
  const [names, setNames] = useState(boards.names)
  const charts = chartsOf(args)
  const name = args.get('name') ?? ''
  const query = args.toString()
  useEffect(() => {
    // Without charts in the URL, it is the board that was shown last.
    if (query !== '') setProblem(boards.opened(charts, name))
    else if (boards.last !== '') router.replace(`#/board?${boards.last}`)
  }, [query])

  const show = (changed: readonly ChartSpec[], as = name): void =>
    router.replace(linkTo('board', '', changed.length === 0 && as === '' ? { name: '' } : boardArgs(changed, as)))
  const isKept = names.includes(name)
  // A URL that somebody has sent may have the name of another board of this browser.
  const isSame = isKept && boards.isKept(name, charts)
  const save = (as: string): void => {
    const refused = boards.save(as, charts, name)
    setProblem(refused)
    if (refused !== '') return
    // With another name it is renamed.
    if (isSame && name !== as) boards.delete(name)
    setNames(boards.names)
    show(charts, as)
  }
  const remove = (): void => {
    setProblem(boards.delete(name))
    setNames(boards.names)
    show(charts, '')
  }
  const move = (from: number, to: number): void => {
    const moved = [...charts]
    moved.splice(to, 0, ...moved.splice(from, 1))
    show(moved)
  }
  return (
    <>
      <header>
        <h1>{name === '' ? 'Board' : <Name text={name} max={48} />}</h1>
        <Naming key={name} name={name} isKept={isKept} isSame={isSame} onSave={save} onDelete={remove} />
      </header>
      {problem === '' ? null : (
        <p class="banner" role="alert">
          {problem}
        </p>
      )}
      {names.length === 0 ? null : (
        <nav class="families" aria-label="Boards">
          {names.map((one) => (
            <a
              key={one}
              class="pill"
              href={`#/board?${boards.get(one)}`}
              aria-current={one === name ? 'true' : undefined}
            >
              <Name text={one} max={32} />
            </a>
          ))}
          {charts.length === 0 && name === '' ? null : (
            <a class="pill" href={linkTo('board', '', { name: '' })}>
              new board
            </a>
          )}
        </nav>
      )}
      {charts.length === 0 ? (
        <p class="empty">
          No chart is pinned. Open a <a href={linkTo('metrics')}>metric</a> and press <b>Pin</b>; the URL of this page
          is the board, to be bookmarked and sent.
        </p>
      ) : (
        <>
          <div class="board-controls">
            <p class="note">The URL of this page is the board.</p>
            <ShareBoard consumer={consumer} identity={identity} charts={charts} name={name} />
            <ChartControls page={page} />
          </div>
          <div class="columns charts">
            {charts.map((spec, index) => (
              <ChartCard
                key={encodeChart(spec)}
                consumer={consumer}
                page={page}
                spec={spec}
                height={HEIGHT}
                head={
                  <ChartHead
                    spec={spec}
                    onEarlier={index === 0 ? undefined : () => move(index, index - 1)}
                    onLater={index === charts.length - 1 ? undefined : () => move(index, index + 1)}
                    onRemove={() => show(charts.filter((_, at) => at !== index))}
                  />
                }
              />
            ))}
          </div>
        </>
      )}
    </>
  )
}

interface NamingProps {
  readonly name: string
  readonly isKept: boolean
  /** Whether what is kept under the name is what is shown. */
  readonly isSame: boolean
  readonly onSave: (name: string) => void
  readonly onDelete: () => void
}

function Naming({ name, isKept, isSame, onSave, onDelete }: NamingProps) {
  const [text, setText] = useState(name)
  const [asked, setAsked] = useState<'Replace' | 'Delete'>('Replace')
  const dialog = useRef<HTMLDialogElement>(null)
  const as = text.trim()
  const ask = (what: typeof asked): void => {
    setAsked(what)
    dialog.current?.showModal()
  }
  return (
    <form
      class="naming"
      onSubmit={(event) => {
        event.preventDefault()
        if (isKept && !isSame && as === name) ask('Replace')
        else onSave(as)
      }}
    >
      <input
        name="board"
        aria-label="Name of the board"
        placeholder="Name of the board"
        maxLength={80}
        value={text}
        onInput={({ currentTarget }) => setText(currentTarget.value)}
      />
      <button type="submit">{isSame && as !== name ? 'Rename' : 'Save'}</button>
      {isKept ? (
        <button type="button" onClick={() => (isSame ? onDelete() : ask('Delete'))}>
          Delete
        </button>
      ) : null}
      <ConfirmDialog
        dialog={dialog}
        name={`${asked} ${name}`}
        label={asked}
        isDangerous
        onConfirm={() => (asked === 'Delete' ? onDelete() : onSave(as))}
      >
        This browser keeps other charts under the name <bdi>{name}</bdi> than are shown here. {asked} them?
      </ConfirmDialog>
    </form>
  )
}

interface ChartHeadProps {
  readonly spec: ChartSpec
  readonly onEarlier: (() => void) | undefined
  readonly onLater: (() => void) | undefined
  readonly onRemove: () => void
}

function ChartHead({ spec, onEarlier, onLater, onRemove }: ChartHeadProps) {
  const title = chartText(spec)
  return (
    <div class="head">
      <h2 class="code">
        <a href={chartLink(spec)}>
          <Name text={title} max={48} />
        </a>
      </h2>
      <p class="choices">
        <button
          type="button"
          class="plain"
          aria-label={`Move ${title} forward`}
          disabled={!onEarlier}
          onClick={onEarlier}
        >
          ←
        </button>
        <button type="button" class="plain" aria-label={`Move ${title} back`} disabled={!onLater} onClick={onLater}>
          →
        </button>
        <button type="button" class="plain" aria-label={`Remove ${title}`} onClick={onRemove}>
          ×
        </button>
      </p>
    </div>
  )
}
