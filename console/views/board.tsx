/** A board of pinned charts. Its URL is the board itself; under a name the server keeps it. */
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { Consumer, PlainRecord } from '../../client/browser.ts'
import {
  Boards,
  boardArgs,
  type ChartSpec,
  chartLink,
  chartsOf,
  chartsText,
  chartText,
  encodeChart,
  placeOf,
} from '../board.ts'
import { BrowserStorage } from '../browser-storage.ts'
import { linkInTime } from '../chart-time.ts'
import { isKeptAs, type KeptBoard, useKeptBoards, useOpenedBoard } from '../kept-boards.ts'
import { BoardNaming } from '../parts/board-naming.tsx'
import { ChartCard } from '../parts/chart-card.tsx'
import { ChartControls } from '../parts/chart-controls.tsx'
import { useChartPage } from '../parts/chart-page.ts'
import { type Ended, useExecution } from '../parts/execution.ts'
import { ExpressionCard } from '../parts/expression-chart.tsx'
import { Name } from '../parts/name.tsx'
import { ShareBoard } from '../parts/share-board.tsx'
import { useIsListed } from '../query.ts'
import { READY_BOARDS, type ReadyBoard } from '../ready-boards.ts'
import { sentence } from '../refusals.ts'
import { linkTo, type ViewProps } from '../route.ts'

const HEIGHT = 200

export function BoardView({ consumer, fleet, router, identity }: ViewProps) {
  const { args } = router.route.value
  const browser = useMemo(() => new Boards(new BrowserStorage()), [])
  const page = useChartPage(consumer, fleet, router)
  const [problem, setProblem] = useState('')
  const [round, setRound] = useState(0)
  const [names, setNames] = useState(browser.names)
  const mayKeep = useIsListed(consumer, 'producer.controls', 'board.save')
  const { boards, hasMore } = useKeptBoards(consumer, round)
  const charts = chartsOf(args)
  const name = args.get('name') ?? ''
  const place = placeOf(args)
  const opened = useOpenedBoard(consumer, place?.board, round)
  const kept = place === undefined ? undefined : opened
  const isToOpen = place !== undefined && place.version === undefined
  const isGiven = ['chart', 'name', 'board'].some((one) => args.has(one))
  const board = new URLSearchParams(boardArgs(charts, name, place)).toString()
  const show = (changed: readonly ChartSpec[], as = name, at = place): void =>
    router.replace(
      linkInTime(
        linkTo('board', '', changed.length === 0 && as === '' ? { name: '' } : boardArgs(changed, as, at)),
        args,
      ),
    )
  // Not after the next frame: what somebody sees is kept, however soon the page is left.
  useLayoutEffect(() => {
    if (isToOpen) return
    // Without charts in the URL, it is the board that was shown last.
    if (isGiven) setProblem(browser.opened(board))
    else if (browser.last !== '') router.replace(linkInTime(`#/board?${browser.last}`, args))
  }, [isGiven, isToOpen, board])
  useLayoutEffect(() => {
    if (isToOpen && kept) show(kept.charts, kept.name, { board: kept.board, version: kept.version })
  }, [isToOpen, kept])

  const isOwn = kept?.isOwn === true
  const isSame = kept ? isKeptAs(kept, charts, name) : false
  const isOld = kept ? !isToOpen && kept.isOwn && kept.version !== place?.version : false
  // One that an earlier version of the console has kept in this browser.
  const isOfBrowser = place === undefined && names.includes(name)
  const done =
    (act: (value: PlainRecord) => void) =>
    (end: Ended): void => {
      setProblem(end.outcome === 'ok' ? '' : sentence(end.detail || end.outcome))
      setRound((before) => before + 1)
      if (end.outcome === 'ok') act((end.value ?? {}) as PlainRecord)
    }
  /** The name that it was saved under. */
  const saved = useRef('')
  const saving = useExecution(
    consumer,
    done(({ board: id, version }) => {
      if (isOfBrowser) browser.delete(name)
      setNames(browser.names)
      show(charts, saved.current, { board: Number(id), version: Number(version) })
    }),
  )
  const deleting = useExecution(
    consumer,
    done(() => show(charts, '', undefined)),
  )
  const refused = [saving.run, deleting.run].find((run) => run.kind === 'refused' || run.kind === 'lost')
  const save = (as: string, shared: boolean): void => {
    saved.current = as
    const at = isOwn && place?.version !== undefined ? { board: place.board, version: place.version } : {}
    void saving.execute('board.save', () => ({ ...at, name: as, charts: chartsText(charts), shared }))
  }
  const remove = (): void => {
    const { board: id = 0, version = 0 } = place ?? {}
    void deleting.execute('board.delete', () => ({ board: id, version }))
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
        {mayKeep ? (
          <BoardNaming
            key={`${place?.board} ${name} ${kept?.isShared}`}
            name={name}
            isOwn={isOwn}
            isSame={isSame}
            isShared={isOwn && kept?.isShared === true}
            isBusy={saving.run.kind === 'running' || deleting.run.kind === 'running'}
            onSave={save}
            onDelete={remove}
          />
        ) : null}
      </header>
      {problem === '' && refused === undefined ? null : (
        <p class="banner" role="alert">
          {problem || (refused !== undefined && 'text' in refused ? refused.text : '')}
        </p>
      )}
      {isOld ? (
        <p class="banner" role="status">
          The server keeps a newer version of this board, which the one that is shown here cannot replace.{' '}
          <a href={linkInTime(linkTo('board', '', { board: String(kept?.board) }), args)}>Open the newer one</a>, or{' '}
          <button type="button" class="plain" onClick={() => show(charts, '', undefined)}>
            go on with this one as a new board
          </button>
          .
        </p>
      ) : null}
      {place !== undefined && kept === null ? (
        <p class="banner" role="status">
          The server keeps this board no more, or its owner does not share it.
        </p>
      ) : null}
      {kept && !kept.isOwn ? (
        <p class="note">
          This board is of <bdi>{kept.owner}</bdi>. <b>Save</b> makes a copy that is yours.
        </p>
      ) : null}
      {isOfBrowser && mayKeep ? (
        <p class="banner" role="status">
          This board is in this browser alone. <b>Save</b> keeps it on the server.
        </p>
      ) : null}
      <BoardLinks
        boards={boards}
        hasMore={hasMore}
        ofBrowser={names.map((one) => [one, browser.get(one) ?? ''])}
        shown={place?.board}
        name={name}
        isNew={charts.length === 0 && name === ''}
        time={args}
      />
      <ReadyBoards consumer={consumer} time={args} shown={place === undefined ? name : ''} />
      {charts.length === 0 ? (
        <p class="empty">
          No chart is pinned. Open a <a href={linkTo('metrics')}>metric</a> and press <b>Pin</b>, or a{' '}
          <a href={linkTo('query')}>query</a> and press <b>Add to board</b>; the URL of this page is the board, to be
          bookmarked and sent.
        </p>
      ) : (
        <>
          <div class="board-controls">
            <p class="note">The URL of this page is the board.</p>
            <ShareBoard consumer={consumer} identity={identity} charts={charts} name={name} />
            <ChartControls page={page} />
          </div>
          <div class="columns charts">
            {charts.map((spec, index) => {
              const head = (
                <ChartHead
                  spec={spec}
                  link={linkInTime(chartLink(spec), args)}
                  onEarlier={index === 0 ? undefined : () => move(index, index - 1)}
                  onLater={index === charts.length - 1 ? undefined : () => move(index, index + 1)}
                  onRemove={() => show(charts.filter((_, at) => at !== index))}
                />
              )
              const shown = { consumer, page, head, height: HEIGHT }
              const key = encodeChart(spec)
              return spec.expr === undefined ? (
                <ChartCard key={key} spec={spec} {...shown} />
              ) : (
                <ExpressionCard key={key} expr={spec.expr} {...shown} />
              )
            })}
          </div>
        </>
      )}
    </>
  )
}

interface BoardLinksProps {
  readonly boards: readonly KeptBoard[]
  readonly hasMore: boolean
  /** Names and arguments of those that this browser has kept. */
  readonly ofBrowser: readonly (readonly [name: string, args: string])[]
  /** The number of the board that is shown. */
  readonly shown: number | undefined
  readonly name: string
  /** Whether an empty board is shown. */
  readonly isNew: boolean
  readonly time: URLSearchParams
}

/** The boards of the server, and those of this browser. */
function BoardLinks({ boards, hasMore, ofBrowser, shown, name, isNew, time }: BoardLinksProps) {
  if (boards.length === 0 && ofBrowser.length === 0) return null
  return (
    <nav class="families" aria-label="Boards">
      {boards.map(({ board, name: one, owner, isOwn }) => (
        <a
          key={board}
          class="pill"
          href={linkInTime(linkTo('board', '', { board: String(board) }), time)}
          aria-current={board === shown ? 'true' : undefined}
        >
          <Name text={isOwn ? one : `${one} · ${owner}`} max={32} />
        </a>
      ))}
      {ofBrowser.map(([one, args]) => (
        <a
          key={`browser ${one}`}
          class="pill"
          href={linkInTime(`#/board?${args}`, time)}
          aria-current={shown === undefined && one === name ? 'true' : undefined}
        >
          <Name text={`${one} · this browser`} max={48} />
        </a>
      ))}
      {hasMore ? <span class="note">and more</span> : null}
      {isNew ? null : (
        <a class="pill" href={linkTo('board', '', { name: '' })}>
          new board
        </a>
      )}
    </nav>
  )
}

interface ReadyBoardsProps {
  readonly consumer: Consumer
  /** The arguments of the URL: the boards show the same time. */
  readonly time: URLSearchParams
  /** The name of the board that is shown, if the server does not keep it. */
  readonly shown: string
}

/** Boards of what the server has. */
function ReadyBoards({ consumer, time, shown }: ReadyBoardsProps) {
  return (
    <nav class="families" aria-label="Ready boards">
      {READY_BOARDS.map((board) => (
        <ReadyLink key={board.title} consumer={consumer} time={time} shown={shown} board={board} />
      ))}
    </nav>
  )
}

function ReadyLink({ consumer, time, shown, board }: ReadyBoardsProps & { readonly board: ReadyBoard }) {
  const { title, metric, charts } = board
  return useIsListed(consumer, 'producer.metrics', metric) ? (
    <a
      class="pill"
      href={linkInTime(linkTo('board', '', boardArgs(charts, title)), time)}
      aria-current={shown === title ? 'true' : undefined}
    >
      {title}
    </a>
  ) : null
}

interface ChartHeadProps {
  readonly spec: ChartSpec
  readonly link: string
  readonly onEarlier: (() => void) | undefined
  readonly onLater: (() => void) | undefined
  readonly onRemove: () => void
}

function ChartHead({ spec, link, onEarlier, onLater, onRemove }: ChartHeadProps) {
  const title = chartText(spec)
  return (
    <div class="head">
      <h2 class="code">
        <a href={link}>
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
