"""Names that are frequent where English is spoken: words for a recogniser that expects a name. They stand roughly in
the order of their frequency, by common knowledge. Of names that sound the same (Clark, Clarke) one is here.
"""

MEN = tuple(
    (
        "james john robert michael william david richard charles joseph thomas christopher daniel paul mark donald "
        "george kenneth steven edward brian ronald anthony kevin jason matthew gary timothy jose larry jeffrey "
        "frank scott eric andrew raymond gregory joshua jerry dennis walter patrick peter harold douglas henry "
        "carl arthur ryan roger joe juan jack albert jonathan justin terry gerald keith samuel ralph lawrence "
        "nicholas roy benjamin bruce brandon adam harry fred wayne billy steve louis jeremy aaron randy howard "
        "eugene carlos russell bobby victor martin ernest phillip todd jesse craig alan clarence sean philip chris "
        "johnny earl jimmy antonio simon oliver luke max leo tom tim ben sam dan mike nick tony alex"
    ).split()
)

WOMEN = tuple(
    (
        "mary patricia linda barbara elizabeth jennifer maria susan margaret dorothy lisa nancy karen betty helen "
        "sandra donna carol ruth sharon michelle laura sarah kimberly deborah jessica shirley cynthia angela "
        "melissa brenda amy anna rebecca virginia kathleen pamela martha debra amanda stephanie carolyn christine "
        "marie janet catherine frances ann joyce diane alice julie heather teresa doris gloria evelyn jean cheryl "
        "mildred katherine joan ashley judith rose janice kelly nicole judy christina kathy beverly denise tammy "
        "irene jane lori rachel marilyn andrea kathryn louise jacqueline wanda bonnie julia ruby lois tina phyllis "
        "norma paula diana annie lillian emily robin emma lucy kate charlotte sophie olivia grace claire hannah"
    ).split()
)

SURNAMES = tuple(
    (
        "smith johnson williams jones brown davis miller wilson moore taylor anderson thomas jackson white harris "
        "martin thompson garcia martinez robinson clark rodriguez lewis lee walker hall allen young hernandez king "
        "wright lopez hill scott green adams baker gonzalez nelson carter mitchell perez roberts turner phillips "
        "campbell parker evans edwards collins stewart sanchez morris rogers reed cook morgan bell murphy bailey "
        "rivera cooper richardson cox howard ward torres peterson gray ramirez james watson brooks kelly sanders "
        "price bennett wood barnes ross henderson coleman jenkins perry powell long patterson hughes flores "
        "washington butler simmons foster bryant alexander russell griffin diaz hayes myers ford hamilton graham "
        "sullivan wallace woods cole west jordan owens reynolds fisher ellis harrison gibson mcdonald cruz "
        "marshall ortiz gomez murray freeman wells webb simpson stevens tucker porter hunter hicks crawford henry "
        "boyd mason morales kennedy warren dixon ramos reyes burns gordon shaw holmes rice robertson hunt black "
        "daniels palmer mills nichols grant knight ferguson rose stone hawkins dunn perkins hudson spencer gardner "
        "payne pierce berry matthews arnold wagner willis ray watkins olson carroll duncan snyder hart cunningham "
        "bradley lane andrews ruiz harper fox riley armstrong carpenter weaver lawrence elliott chavez sims austin "
        "peters franklin lawson patel khan singh nguyen chen wang kim walsh byrne o'brien fraser"
    ).split()
)
