"""Phrases by which sentences and titles of a README are told apart, as patterns. English; see `sentences.py` and `prose.py`.

Those that begin something are for `match`, the others for `search`. Repetition in them is bounded.
"""

from __future__ import annotations

import re

from repo2ctx.markup import END, LINK

_THIS = (
    r"(?:this|the|our|these|that) (?:\w+ )?"
    r"(?:project|repo(?:sitory)?|package|library|module|tool|crate|gem|plugin|fork|branch)"
)

_PLACE = r"(?:discord|slack|gitter|irc|newsletter|twitter|zulip|telegram)"

POINTER = re.compile(
    r"\W*(?:and |or |but |so |also,? |then,? )?(?:please|see|visit (?:the|our|us)|read (?:the|more|our|about|on|this"
    r"|through|it)|refer to"
    r"|consult (?:the|our)|head (?:over )?to|go to|go ahead|have a look|take a (?:look|tour)|look at|check (?:out|the"
    r"|it|our|what|how)|learn (?:how|more|about)"
    r"|find (?:out|more|the|all)|browse (?:the|our)|explore (?:the|our|a)|view the|try (?:it|the|out)|click (?:on|the"
    r"|here)|video |screencast |suppose |imagine |consider (?:the|this|an?)\b|watch (?:the|this|our|a)|discover (?:more|how)"
    r"|for (?:more|details?|further|full|additional|complete|a (?:list|full|complete|detailed|quick|more"
    r"|comprehensive)|the (?:full|latest|complete)"
    r"|(?:an? )?(?:example|documentation|instructions?|information|help|usage|questions?|tutorials?|installation"
    r"|contributing|docs))\b"
    r"|(?:more|further|full|detailed|additional|complete|extensive|comprehensive|other) (?:info(?:rmation)?|details?"
    r"|docs?|documentation|examples?)\b"
    r"|(?:the |our |full |complete |official |user |api |online |latest )*(?:docs?|documentation|manual|user guide"
    r"|tutorials?|wiki|web ?site"
    r"|home ?page|source(?: code)?|code|examples?|changelog|api reference|reference|javadocs?"
    r"|faq)(?: and [\w ]{1,30})? (?:is|are|can|may|lives?|contains?|has|have) "
    r"(?:\w+ )?(?:be |also |available|hosted|found|located|at|on|in|here|published|documented|a |the |all |more)"
    r"|this (?:readme|document|page|file|section|guide|list|article|is (?:just )?(?:a |the )?(?:quick|brief|short"
    r"|readme|main|master|development|documentation for)|is the (?:\w+ ){0,2}(?:repo(?:sitory)?|home|source(?: code)?)"
    r" (?:for|of))\b"
    r"|(?:below|above|here|following|the following|what follows)(?:'s| is| are)\b|here['’]s|as (?:an? )?example"
    r"|a (?:minimal|simple|basic|quick|full|complete|short|small) example"
    r"|you (?:can|may|will|should|could) (?:also |always )?(?:find|read|see|check|view|learn|browse|visit|follow|ask|look at"
    r"|join|download|get (?:it|the)|access|test|try|browse|use the (?:following|link))"
    r"|(?:if )?you(?:['’]re| are) (?:viewing|reading|looking|interested|new|browsing|unsure|not sure)"
    r"|the sections? (?!of\b)"
    r"|for [^,.]{1,80}?(?:, (?:please )?(?:read|use|visit|check|consult|see)| (?:please )?(?:see|visit|refer to"
    r"|consult))\b|to (?:run|try|see|start|use|get|test|build|compile|install|download|learn|find|read)\b|after that\b"
    r"|(?:need|want|looking for) (?:help|more|to)\b.*\?|questions?\b|got (?:a )?questions?|quick ?links?|links?:"
    r"|quick ?start|getting started)",
    re.IGNORECASE,
)
"""Begins a sentence that sends the reader elsewhere."""

LABEL = re.compile(
    r"\W*(?:note|warning|important|caution|tip|attention|disclaimer|hint|q&a|authors?|maintainers?|licen[cs]e"
    r"|copyright|version|status|date|website|web site"
    r"|home ?page|url|documentation|docs|source(?: code)?|code|repository|github|bug(?: tracker| reports?)?|issues?"
    r"|issue tracker|contact|e-?mail|download|downloads"
    r"|install(?:ation)?|usage|news|update|updated|changelog|demo|live demo|blog|twitter|irc|chat|discord|slack"
    r"|gitter|mailing lists?|requirements?|requires|tl;dr|ps|p\.s"
    r"|new in [\w.]+|image credits?|credits?|photo|logo(?: by)?|\w+ licen[cs]es?|edit|todo|fyi|heads up"
    r"|breaking change|pypi|npm|maven|see also|build status|tutorial|example|video|paper|sponsors?|translations?"
    r"|languages?|table of contents"
    r"|organization|credits?|keywords|tags|topics|platforms?|documentation status)(?:\s?\([^()]{0,30}\))?\s?[:!](?=\s"
    r"|\Z)",
    re.IGNORECASE,
)
"""Begins a line that is a field: "License: ..."."""

NOTICE = re.compile(
    r"no longer (?:be )?(?:actively |being |under )?(?:maintain|support|develop|updat|activ|recommend|publish)"
    r"|\bdeprecated\b|do not use\b|(?:use|environment) in production\b|not (?:actively|currently) (?:maintain"
    r"|develop)"
    r"|(?:looking|searching|seeking|need|wanted)\b.{0,40}\b(?:maintainers?|contributors?|volunteers?|help)\b"
    r"|maintenance mode|feature[- ]complete|end[- ]of[- ]life"
    rf"|{_THIS} (?:is|has been|was|are) (?:now |currently |officially |being )?(?:deprecated|archived|abandoned"
    rf"|unmaintained|discontinued|obsolete|superseded|inactive|moved|frozen|maintained)"
    r"|(?:has|have) (?:been )?(?:moved|migrated|renamed|relocated|transferred) (?:to|into|from)|formerly (?:known"
    r"|called)|used to be called"
    r"|under (?:heavy|active|rapid|constant|continuous|ongoing) development|actively (?:developed|maintained)"
    r"|work[- ]in[- ]progress|\bwip\b|early (?:stages?|development|alpha|days)"
    r"|(?:not|isn['’]t) (?:yet )?(?:production[- ]ready|ready for|stable|intended for production|feature)"
    r"|subject to change|may (?:change|break)|breaking change"
    r"|(?:is|are|in) (?:still |currently |now )?(?:in )?(?:an? )?(?:alpha|beta|pre-?release|preview|experimental"
    r"|unstable)\b|release candidate"
    r"|(?:version|release|v)\.? ?\d[\w.]* (?:is|has been|was|of|will|introduces|adds|requires|and|released|changes"
    r"|supports|brings|comes|now)\b|\b(?:released|is out|is here|is now available|just landed)!"
    r"|(?:latest|newest|upcoming|previous) (?:\w+ )?(?:versions?|releases?)\b|(?:current|next"
    r"|last) (?:\w+ )?(?:version|release) (?:is|of|will)\b|\b\d\.x (?:series|branch|line|versions?)\b"
    r"|should be contributed"
    r"|(?:master|main|develop(?:ment)?|stable) branch|\bthis branch\b|\bunreleased\b|(?:we['’]re|we are) (?:excited"
    r"|happy|pleased|proud|thrilled|looking|hiring|planning|working)|coming soon|stay tuned"
    r"|compatible with (?:version|\w+ \d)|(?:supports?|requires?|needs?|works with|tested (?:on|with)"
    r"|(?:is )?compatible with|runs on) (?:only )?(?:at least )?(?:python|node(?:\.js)?|java|jdk|php|ruby|go|rust|c\+\+"
    r"|android|ios|\.net|perl|pypy|cpython)(?: versions?)? ?v?\d"
    r"|minimum (?:supported )?(?:rust|python|java|node|go) version|\bmsrv\b|semantic versioning|semver"
    r"|follows? the .{0,20}versioning|unit tests?\b.{0,30}\bpass|security (?:vulnerabilit|issue|polic|fix)"
    r"|code of conduct|governed by|bug fixes|is (?:now )?(?:an active project|part of [\w-]+, an)|is now (?:part of"
    r"|maintained|hosted|developed)|\broad ?map\b|adopters|^(?:.{0,40}\bis )?used by\b|^powering\b"
    r"|community[- ]provided|downloads? ?(?:/|per|a|each) ?(?:week|month|day)|most (?:downloaded|starred)"
    r"|tested (?:using|against)|versions? \d[\w.]* (?:and|or) (?:above|later|newer|up|higher|below)"
    r"|supported \w+ versions?|^in \w+ v?\d+\.\d|^(?:update|edit|news)\b\W*(?:\w+ )?\d{4}|changes made in"
    r"|this (?:release|version)\b|by @\w+|requires? `|we want your|sign up|\boffice hours\b|\bmeetings?\b"
    r"|as of (?:version|v\d|\w+ \d{4})|since (?:version|v\d|\d{4})|(?:copyright|\(c\)|©) .{0,20}\d{4}"
    r"|all rights reserved|\bcurrently \([^()]{0,20}\d{4}\)|^starting with (?:\w+ ){0,3}v?\d"
    r"|\b(?:january|february|march|april|may|june|july|august|september|october|november|december),? \d{4}\b|\w/[\w.-]+#\d"
    r"|works (?:\S+ ){0,4}python (?:versions? )?\d|^(?:python|java|jdk|node(?:\.js)?|php|ruby|go|rust) v?\d[\w.+-]*"
    r"(?: .{0,40})?\Z"
    r"|\b(?:once|previously|originally|formerly) (?:named|called|known)",
    re.IGNORECASE,
)
"""The state, the versions, the issues, the dates or the requirements of a project."""

ADVERT = re.compile(
    r"\W*(?:show your|star (?:us|this|the)|follow (?:us|me|the|@)|join (?:us|the|our|me)|subscribe|tweet|sponsor|donat"
    r"|support (?:us|this|the (?:project|development))|become a"
    r"|buy me|help (?:us|me|wanted|support|keep)|vote|give (?:us|it|this)|chat with|come |get involved|get in touch"
    r"|stay up|spread the|made with|built with (?:love|❤)|powered by"
    r"|proudly|we are a member|brought to you|happy (?:coding|hacking)|enjoy"
    r"|welcome to|want to (?:help|contribute|support|learn|try"
    r"|see)|like (?:this|it|what)|love |don['’]t (?:forget|hesitate)"
    r"|let['’]?s\b|wish us|thanks?\b|thank you|special thanks|kudos|shout|hire|we(?:['’]d| would) (?:love|like"
    r"|appreciate)|let (?:us|me) know|feel free|say (?:hello|hi|goodbye)|try it|get started|ready to|bug reports"
    r"|report (?:bugs|issues|a )"
    r"|contact |reach out|ask (?:questions?|on|in)|discuss |contributions?\b|contributing|pull requests?|prs?\b"
    r"|issues? (?:and|are|should|can)|patches|fork (?:it|this|the)|hello|hi[ ,!]|hey)",
    re.IGNORECASE,
)
"""Begins advertising, thanks, or an invitation."""

REQUEST = re.compile(
    r"\bplease\b|\bcit(?:e|ing|ation)\b|\bif you (?:use|find|like|want to (?:contribute|help|know|learn|see|read"
    r"|report|build|install|get|try|run|use|support|cite|understand)|have (?:any|a |an |questions|found|trouble"
    r"|problems)"
    r"|enjoy|would like|['’]d like|wish|need (?:help|support|more)|are (?:looking|new|interested|reading|viewing"
    r"|using|upgrading|having|unsure|wondering|a )|encounter|discover|run into|prefer|don['’]t (?:have|know|want)"
    r"|just want|already)"
    r"|\b(?:pull requests?|PRs|patches|contributions?|donations?|feedback|bug reports|suggestions) (?:are|is)\b"
    r"|\bwe (?:welcome|encourage|appreciate|thank|recommend|suggest|invite|accept|hope|gladly)\b|feel free"
    r"|\b(?:patreon|opencollective|open collective|stack ?overflow|mailing list|github sponsors|google group|tidelift"
    r"|thanks\.dev|tip jar|matrix room)\b"
    rf"|\b(?:join|our|ask|chat|talk|reach|contact|find|follow|meet|questions?|community|discussions?)\b.{{0,60}}\b{_PLACE}\b"
    rf"|\b(?:on|the) {_PLACE}(?: (?:channel|community|workspace|server|chat|room|group))?\W*\Z"
    r"|\bbrowser (?:extension|stack) for testing|\b(?:sponsored|funded|supported|backed|financed|hosted"
    r"|developed and maintained|maintained|created|written|authored|started|initiated) (?:by"
    r"|and maintained by)\b.{0,80}\Z"
    r"|\bcheck (?:it |them )?out\b|\btake a look\b|\byou should too\b|\b(?:can|may) (?:also )?be found\b|(?:is"
    r"|are) documented (?:in|at|on)\b|\brefer to the\b|\bsite is (?:at|on)\b"
    r"|\b(?:example|code|snippet|listing|commands?|operations?|demo|lines|shown|described|listed|given|mentioned"
    r"|section) (?:shown )?(?:above|below)\b|\bthe above\b|\b(?:the )?following (?:sections?|examples?|commands?"
    r"|steps?|code|snippet|links?|pages?)\b|\bwith this call\b|\bthese (?:two|three) lines\b|\bas shown\b"
    r"|\bimplementation of this interface\b"
    r"|\b(?:usage )?examples?\b.{0,60}\b(?:is|are) (?:given|shown|provided|available|included)\b|\./configure"
    r"|\brun configure\b|--enable-\w|\b(?:docstring|usage|string|diagram|picture|table|screenshot) (?:above|below)\b"
    r"|\b(?:in|of) this readme\b"
    r"|\b(?:tutorials?|documentation|guides?|docs) (?:is|are) (?:provided|available|hosted) (?:on|at|in)\b"
    r"|\bworth (?:a|the) (?:read|look)\b|\bfor (?:more|further|full) (?:details?|information|info)\b"
    r"|\bmake (?:test|install)\b|\bmakefiles?\b|\bgithub (?:issues?|discussions?)\b|issue tracker|open an issue"
    r"|file (?:a|an) (?:bug|issue)|\bread(?:ing)? (?:the|our) (?:docs|documentation|guide|wiki|manual)",
    re.IGNORECASE,
)
"""Asks something of the reader, or names places to ask; also what refers to code nearby."""

FAME = re.compile(
    r"\b(?:adopted|trusted|loved) by\b|\b(?:is|are) (?:also |already |widely |currently )?used (?:in|by) "
    r"(?:many|several|most|over|thousands|millions|hundreds|dozens|all|numerous|various|\d)"
    r"|\bone of the (?:\w+ )?most (?:popular|advanced|used|widely|downloaded|starred)"
    r"|\b(?:thriving|vibrant|large|huge|growing) (?:\w+ )?community\b|\b(?:industry|world)[- ]leading\b|^we believe\b",
    re.IGNORECASE,
)
"""Who uses it, and how well it is liked."""

NAMING = re.compile(
    r"\b(?:derives|comes|taken|derived|borrowed) from the (?:\w+ )?(?:word|name|term|verb|noun)\b"
    r"|\bis named (?:after|for)\b|\betymology\b|\b(?:noun|verb|adjective): |^(?:the|its|our) name\b"
    r"|\bpronounced (?:as|like)\b|\bis (?:an? )?(?:recursive )?(?:acronym|backronym) (?:for|of)\b",
    re.IGNORECASE,
)
"""Says where the name comes from."""

LICENSED = re.compile(
    r"^the (?:\w+ )?licen[cs]e\b|\blicen[cs]ed (?:under|with)\b|(?:dual|tri)[- ]licen[cs]ed|public domain|(?:is|are"
    r"|was) (?:\w+ ){0,2}?(?:licen[cs]ed|released|distributed|available|provided|published|shared"
    r"|open[- ]sourced) (?:\w+ ){0,3}?(?:under|as|with) "
    r"|\A\W*(?:licen[cs]ed|released|distributed|published) (?:under|as)\b|(?:mit|bsd|apache|gpl|lgpl"
    r"|mpl)[\w. -]{0,20} licen[cs]ed?\W*\Z|licen[cs]e (?:file|text|terms)|see (?:the )?licen[cs]e",
    re.IGNORECASE,
)
"""Says under which licence."""

COMMAND = re.compile(
    r"\W*(?:(?:you can|you may|first|then|next|now|just|simply|finally|alternatively|or|and|also|you['’]ll need to"
    r"|you (?:should|must|need to)|the easiest way to|in order to|either|make sure|ensure|once)\b.{0,30}?\b)?"
    r"(?:(?:run|type|execute|launch|invoke|call|start|press|open) (?:the )?`"
    r"|(?:install|download|clone|run|add|import|copy|build|compile|execute|type|open|navigate|include|upgrade|update"
    r"|create|set up|use|start|put|paste|press|launch|invoke|call|require|checkout)\b.*"
    r"(?:`(?:\$|pip|npm|yarn|brew|conda|cargo|docker|apt|go get|gem|composer|mvn|gradle|make)\b"
    r"|\b(?:pip|npm|yarn|brew|homebrew|conda|cargo add|maven|gradle|(?:the|this) (?:repository|commands?)|following"
    r"|dependenc(?:y|ies) to|to your (?:project|gemfile|pom|build|path)|from (?:pypi|npm|source)"
    r"|from the (?:releases?|website|repo|command|root|source|download)|package manager|below|virtualenv|installer)\b)"
    r"|(?:log|sign) in\b"
    r"|(?:pip3?|npm|yarn|brew|conda|cargo|docker|apt(?:-get)?|go|gem|composer|mvn|gradle)"
    r" (?:i|install|add|get|run|pull|require)\b)",
    re.IGNORECASE,
)
"""Begins a step of an installation or of usage."""

INSTALL = re.compile(
    r"\W*(?:(?:you can |to |how to )(?:install|download|build (?:it|the|from)|get (?:it|started)|compile|clone"
    r"|run (?:it|the|this)|use (?:it|this|the|\S+),? (?:you|add|just|simply|first|in))\b"
    r"|install(?:ation|able)\b|(?:binaries|binary|packages?|builds|releases|wheels|artifacts|jars?|snapshots?"
    r"|downloads?) (?:is|are|can|for)\b.*\b(?:available|found|downloaded|installed|published)|(?:is"
    r"|are) available (?:on|from|in|via|at|as) (?:pypi|npm|maven|the|conda|homebrew|crates|nuget|packagist)"
    r"|.{0,60}\b(?:can be|is|are) (?:easily )?(?:installed|downloaded|obtained|built) (?:via|with|from|using|through"
    r"|on|by|in)\b|.{0,60}\b(?:is|are) available (?:on|from|in|via|at) (?:pypi|npm|maven|conda|homebrew|crates|nuget"
    r"|packagist|the (?:maven|npm|python|central|cheese)))",
    re.IGNORECASE,
)
"""Says where to get it."""

TEMPLATE = re.compile(
    r"\{\{|\}\}|<%|%>|\$\{\w|(?<!\w)\{[a-z][\w-]*\}(?! is an? )|:::|\[\[|\]\]|={4,}|-{5,}|\|.*\||\\\w+\{|</?\w+[^<>]*>"
)
"""Left-over markup, or a template not filled in."""

HERE = re.compile(
    rf"{LINK}\W*(?:here|this|link|these|this (?:page|link|document|guide|post|article|video)|click here|docs"
    rf"|documentation|wiki|website|read more|more|details|demo|example|examples)\W*{END}",
    re.IGNORECASE,
)
"""A link that says only "here"."""

ODD = re.compile(
    r"\W*\Z|[*†‡] |\.\.\.|…|[\"“][^\"”]*[\"”]\.?\Z|(?:or|which|otherwise), |which |even when ", re.IGNORECASE
)
"""Begins a footnote, a quotation, or half a sentence."""

HALF = re.compile(
    r"(?:with|for|are|is|was|and|or|of|in|by|where|while|from|as|on|at|which|that|who|whose|nor|than|because) [\w`]"
)
"""Begins, in small letters, the half of a sentence whose other half was no prose."""

ANAPHOR = re.compile(
    r"\W*(?:it|its|(?:this|that)(?! (?:\w+ )?(?:project|package|library|module|repo(?:sitory)?|tool|crate|gem|app"
    r"|application|framework|plugin|extension)\b)|these|those|they|their|them|he|she|but|however|also|so|then|and|or"
    r"|therefore|thus|in addition|in other words|even|hence|still|yet|another|the (?:first|second|other|latter"
    r"|former)|here|such|otherwise|instead|there|both|additionally|moreover|furthermore|for example|for instance"
    r"|in particular|as such|alternatively|similarly|likewise)\b",
    re.IGNORECASE,
)
"""Begins a sentence that goes on from the one before."""

LEAD_IN = re.compile(
    r"\b(?:follow\w*|below|these|this|those|examples?|usage|e\.g\.|such as|things?|ways?|features?|here|steps?"
    r"|highlights?|includ\w*|commands?|snippet|code)\b[^.:]{0,60}:\W*\Z"
    r"|\b(?:like|by|to|and|or|provid\w*|offers?|support\w*|contain\w*|are|is|with|of|for|be|in|the|as|that|can|from"
    r"|consists?|has|have|using|via|on)\W*:\W*\Z",
    re.IGNORECASE,
)
"""Ends a sentence that says nothing without the list or code that follows."""

OPEN_END = re.compile(
    r"\b(?:from|to|with|for|including|includes?|as|are|is|by|of|like|provides?|supports?|offers?|that|can|contains?)\Z"
)
"""Ends a sentence that a list completes, without a colon."""

DESCRIBES = re.compile(
    r"(?:(?:an?|the|our|project|product|software|application|app|package|library|system|general|short|brief|quick|main"
    r"|key|core|some|other|major|notable|additional|basic|technical|high-level|design) )*"
    r"(?:(?:[\w.-]+ )?(?:overview|features|highlights|architecture|philosophy)(?: at a glance)?|about|introduction"
    r"|intro|descriptions?"
    r"|summary|background|motivation|how (?:it|\w+) works?|concepts?|design(?: goals| principles)?|goals?|principles"
    r"|rationale|purpose|abstract|synopsis|capabilities|what it does|what it is|why|what|in a nutshell|key points"
    r"|benefits|advantages|functionality|at a glance)\b(?: (?:of|and|for|to|in) .{1,40})?\W*"
    r"|(?:what(?:['’]s| is| are| does)|why|who is|about|introduc\w+|meet|features of|overview of|how does)\b.{0,60}",
    re.IGNORECASE,
)
"""The whole title of a section that describes the project."""

STOPS = re.compile(
    r"(?:how to |the |quick |basic |simple |building |local |project |getting |code |running |example |sample |more "
    r"|other |our |using )*"
    r"(?:install\w*|usages?|us(?:e|ing)\b|quick ?start|starte?d?\b|get(?:ting)? (?:started|it|help)|build\w*"
    r"|compil\w*|download\w*|licen[cs]\w*|copyright|contribut\w*|sponsors?\w*|backers|donat\w*|fund\w*|patrons?"
    r"|credits|authors?|maintainers?|acknowledge?ments?|thanks|contact\w*|support\w*|help|communit\w*|change ?logs?"
    r"|changes|road ?map|news|releases?\w*|release notes|versions?|versioning|history|what['’]?s new|whats new"
    r"|translat\w*|languages|(?:table of )?contents|toc|index|badges|build status|status|stay in touch|issues?|bugs?"
    r"|report\w*|questions?|faqs?|q&a|frequently|examples?|demos?|screenshots?|docs|documentation|docs\b.*|links?"
    r"|resources"
    r"|references?|see also|further|learn\w*|tutorials?|commands?|config\w*|settings|options|requirements?"
    r"|prerequisites?|dependenc\w*|compatib\w*|support(?:ed)? \w+|tests?|testing|develop\w*|hacking|security"
    r"|deprecat\w*|upgrad\w*|migrat\w*"
    r"|notes?|notices?|warnings?|disclaimers?|todos?|known|caveats|limitations|api\b.*|deploy\w*|setup|set up|run\w*"
    r"|cit(?:e|ing|ation)\w*|papers?|publications?|users|who uses|used by|adopters|case stud\w*|related|similar"
    r"|alternatives|packages|modules|files?\b.*|project structure|director\w*"
    r"|people|team|governance|code of conduct|snippets?|snapshots?|maven|gradle|pip|npm|docker|sample|integration|ide"
    r"|editor|plugins?|extensions?|ecosystem|benchmarks?|performance|troubleshoot\w*|want|try|meta|more|step|first"
    r"|hello|tips?|legal|stars?|verif\w*|signing|where to|mailing|chat|discuss\w*|follow|join|important|announce\w*"
    r"|latest|branches|environment|platforms?|instructions?|workflow)\b",
    re.IGNORECASE,
)
"""Begins the title of a section that does not."""

TITLE_STOPS = re.compile(
    r"(?:install\w*|licen[cs]e|contribut\w*|getting started|usage|building|(?:table of )?contents|change ?log)\W*",
    re.IGNORECASE,
)
"""The whole title of a README that begins with such a section."""

DESCRIBES_OTHERS = re.compile(
    r"what['’]?s (?:new|changed|next|in)\b|(?:about|introducing|meet) (?:the (?:authors?|team|docs|maintainers?)|us"
    r"|me|this (?:readme|document|repo))\b|why contribut",
    re.IGNORECASE,
)
"""Begins a title that looks like one which describes, and is not."""

BACKGROUND = re.compile(
    r"\W*(?:[Tt]here (?:are|is|has|have|exist)|(?:[Mm]any|[Ss]everal|[Mm]ost|[Ss]ome) (?:\w+ ){1,4}"
    r"(?:are|have|need|use|require|do)"
    r"|(?:[A-Z][a-z]+ )?[A-Za-z]\w*s are (?:used|widely|often|usually|commonly|typically)"
    r"|(?P<subject>[A-Z]{3,5}) (?:is|are)|[Ii]t is (?:often|hard|difficult|easy|common)) "
)
"""Begins a sentence about the world, or about `subject`, not about the project."""

ABOUT_DOCS = re.compile(
    r"\b(?:sphinx|mkdocs|docusaurus|jekyll|hugo|readthedocs|man ?pages?"
    r"|(?:the|our|this|reference|api) (?:documentation|docs|web ?site|guide)|this (?:directory|folder)|following guide)\b",
    re.IGNORECASE,
)
"""Says, in the README of a folder of documentation, that it is about that."""

DEFINES = re.compile(r"\W*(?:[\w`.+-]+,? ){1,6}?(?:\([^()]{0,100}\) )?is (?:an?|the)\b", re.IGNORECASE)
"""Begins a sentence that says what something is."""
