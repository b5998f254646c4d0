"""What a word can be, a bit each, and words that tell a name: greetings, closings, titles and others, by language."""

# What a word can be, a bit each. By the lists:
GIVEN, FAMILY, PLAIN, OTHER, COMMON, SEEN, EPONYM = (1 << bit for bit in range(7))
"""A given or family name; also a word in small letters (*mark*); mostly a name of no person (*London*); a family name
wherever it has a capital within a sentence; seen with a capital in public text; of a disease or law (*Parkinson*)."""
# By the space:
KNOWN, RARELY = 128, 256
# By the tables below:
(
    GREETING, CLOSING, SUBJECT, IS, INTRODUCTION, LABEL, TITLE, PARTICLE, NEVER, BEFORE, AFTER, AT, FIRM, AND, ADDRESS,
    SUFFIX, DATE, WHEN, FIELD, SITE, HEAD, NOBLE,
) = (512 << bit for bit in range(22))  # fmt: skip
LEADS = GREETING | CLOSING | IS | INTRODUCTION | TITLE | GIVEN
"""What a name in small letters can follow."""
CUES = {
    GREETING: """sehr hi hello hey hiya howdy heya dear hallo hoi bonjour bonsoir salut hola ciao buongiorno buonasera
        olá oi liebe lieber geehrte geehrter servus moin cher chère chers querido querida estimado estimada caro cara
        gentile egregio beste geachte prezado prezada hej witaj""",
    CLOSING: """best regards regard thanks thank cheers sincerely yours truly faithfully respectfully cordially
        warmly wishes warm kind kindest warmest many again you love xoxo thx rgds ta signed danke dank gruß
        grüße grüßen gruss grüsse viele mfg lg vg freundlichen freundliche herzliche merci cordialement
        amitiés bises sentiments saludos gracias atentamente cordiales abrazo saluti cordiali distinti
        grazie groet groeten vriendelijke bedankt obrigado obrigada atenciosamente abraços mit met""",
    SUBJECT: """this name i it ich hier je mi nombre mio nome ik mijn naam meu here there thank good guten buenos
        buenas bon boa mein""",
    IS: "is am bin ist suis es è ben é you morning afternoon evening tag morgen abend días tardes",
    INTRODUCTION: "i'm it's c'est m'appelle appelle llamo soy chiamo sono heiße heisse heet chamo named",
    LABEL: """from to cc bcc name sender recipient contact customer client signed attn author patient employee
        manager agent assignee reporter by driver buyer purchaser seller owner tenant landlord caller guest guests
        claimant witness witnesses attendees present apologies requester representative applicant cardholder
        policyholder subscriber student teacher parent von an absender kunde de à nom expéditeur para nombre cliente
        remitente da nome mittente van aan naam surname surnames lastname forename nachname vorname apellido apellidos
        prénom cognome achternaam voornaam""",
    FIELD: """last first family given middle full surname lastname familyname firstname forename givenname middlename
        fullname nachname vorname apellido apellidos prénom cognome achternaam voornaam""",
    TITLE: """mr mrs ms miss mx dr prof professor doctor sir madame mme mlle monsieur frau herr herrn señor señora
        sr sra dott dottor ssa ra signor signora sig mevrouw meneer dhr mevr rev reverend fr sgt capt lt col
        gen hon judge""",
    PARTICLE: """van von de der den del della delle dello di da dal dalla dos das do du des bin ibn ben bint zu zum zur
        ter ten te op t al el la le los las lo af av mac ó ní y""",
    NOBLE: "van von de te ter del della dos zu al bin ibn",
    NEVER: """there all everyone everybody team support customers customer client service sir madam sirs guys
        folks friends friend world people anyone someone sent please ladies gentlemen member members
        colleagues reader help desk office manager admin administrator staff department damen herren
        zusammen kunde kundenservice kollegen leute tous toutes équipe clients todos equipo amigos tutti
        squadra allemaal iedereen great ok okay yes re fw fwd subject date iban bic cvv cvc ssn dob""",
    BEFORE: """call ask asked asking tell told telling meet met meeting thank thanked contact contacted named speak
        spoke spoken speaking talk talked talking colleague friend neighbour neighbor brother sister wife
        husband boss mother father mum mom dad son daughter uncle aunt cousin doctor nurse teacher patient
        partner roommate landlord agent technician engineer driver assistant pt emailed rang phoned escalated""",
    AFTER: """here speaking said says told tells asked asks called calls wrote writes replied explained added
        thinks thought wants wanted knows knew who whose promised answered admitted""",
    AND: "and und et y e en",
    AT: "the in at near into outside around across throughout a an",
    ADDRESS: "mr mrs ms mx dr prof mme mlle herr frau sig dott dhr mevr",
    SUFFIX: "jr jnr jun sr snr sen ii iii iv esq",
    DATE: """jan feb mar apr april may jun june jul july aug august sep sept oct nov dec mon tue tues wed thu thur thurs
        fri sat sun januar jänner februar märz mai juni juli dez janvier mars avril juin juillet août mei juno
        today yesterday uhr utc gmt""",
    WHEN: "last next since until till by early late mid every this from to",
    FIRM: """corp inc ltd llc plc gmbh co bros group bank university college school street st road rd avenue
        ave park hotel church hospital airport river county city island islands lake plaza building center
        centre club league cup award awards festival museum institute foundation association company
        industries systems films pictures records motors airlines oil energy technologies software
        international holdings partners press times post news house square bridge beach bay valley mountain
        mountains act law prize effect theorem disease syndrome""",
    SITE: """new north south east west northern southern eastern western san santa st saint fort port mount mt lake cape
        united great puerto los las""",
    HEAD: """disease syndrome palsy lymphoma sarcoma tumor thyroiditis chorea ataxia dystrophy phenomenon sign law laws
        theorem effect equation equations constant catheter maneuver smear reflex contracture procedure criteria scale
        score algorithm distribution hypothesis principle esophagus cyst anemia test""",
}
